//! The most that an expression may cost, from its types and the limits of its schema.
//!
//! The file is long, as each function has a cost of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bounds::{Bounds, UNKNOWN, replaced};
use super::{REGULAR, TRAVERSAL};
use crate::check::Checked;
use crate::declared::Declared;
use crate::tree::{Entry, Fold, Kind, Node, Tree};
use crate::types::Type;
use crate::value::Value;

/// The sizes of what is in a list or a map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Bounds,
    value: Bounds,
}

impl Entries {
    fn either(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = (a?, b?);
        Some(Self { is_list: a.is_list, key: a.key.either(b.key), value: a.value.either(b.value) })
    }
}

type Path = Vec<Arc<str>>;

/// A variable of a loop.
#[derive(Clone, Debug)]
struct Local {
    name: Arc<str>,
    path: Path,
    size: Option<Bounds>,
    entries: Option<Entries>,
}

/// What a call costs, and the size of what it returns.
#[derive(Clone, Copy, Debug)]
struct Call {
    cost: Bounds,
    size: Option<Bounds>,
}

/// Returns the most that an expression may cost. `root` is the type of `self`.
pub(crate) fn most(tree: &Tree, checked: &Checked, root: Option<&Declared>) -> u64 {
    let mut estimate = Estimate {
        checked,
        root,
        locals: Vec::new(),
        paths: BTreeMap::new(),
        sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
    };
    estimate.node(&tree.root).max
}

struct Estimate<'a> {
    checked: &'a Checked,
    root: Option<&'a Declared>,
    locals: Vec<Local>,
    paths: BTreeMap<usize, Path>,
    sizes: BTreeMap<usize, Bounds>,
    entries: BTreeMap<usize, Entries>,
}

impl Estimate<'_> {
    fn node(&mut self, node: &Node) -> Bounds {
        match &node.kind {
            Kind::Literal(_) => Bounds::exactly(0),
            Kind::Ident(name) => {
                let path =
                    self.local(name).map_or_else(|| vec![Arc::clone(name)], |local| local.path.clone());
                self.paths.insert(node.id, path);
                Bounds::exactly(1)
            }
            Kind::Select { .. } if matches!(self.type_of(node), Type::Type(_)) => {
                let name = crate::check::qualified(node).unwrap_or_default();
                self.paths.insert(node.id, vec![name.into()]);
                Bounds::exactly(1)
            }
            Kind::Select { operand, field, is_test } => {
                let cost = self.node(operand);
                if *is_test {
                    return cost;
                }
                let has_cost =
                    matches!(self.type_of(operand), Type::Map(..) | Type::Object(_) | Type::Param(_));
                let mut path = self.path(operand);
                path.push(Arc::clone(field));
                self.paths.insert(node.id, path);
                if has_cost { cost.plus(Bounds::exactly(1)) } else { cost }
            }
            Kind::Call { function, target, args } => self.call(node, function, target.as_deref(), args),
            Kind::List { items, .. } => {
                let mut cost = Bounds::exactly(10);
                let mut value = Bounds { min: if items.is_empty() { 0 } else { u64::MAX }, max: 0 };
                for item in items {
                    cost = cost.plus(self.node(item));
                    value = value.either(self.size_or_unknown(item));
                }
                self.entries.insert(node.id, Entries { is_list: true, key: Bounds::exactly(1), value });
                cost
            }
            Kind::Map(entries) => self.map(node, entries),
            Kind::Struct { fields, .. } => {
                fields.iter().fold(Bounds::exactly(40), |cost, field| cost.plus(self.node(&field.value)))
            }
            Kind::Fold(fold) => self.fold(node, fold),
        }
    }

    fn map(&mut self, node: &Node, entries: &[Entry]) -> Bounds {
        let mut cost = Bounds::exactly(30);
        let nothing = Bounds { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let (mut key, mut value) = (nothing, nothing);
        for entry in entries {
            cost = cost.plus(self.node(&entry.key)).plus(self.node(&entry.value));
            key = key.either(self.size_or_unknown(&entry.key));
            value = value.either(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(node.id, Entries { is_list: false, key, value });
        cost
    }

    fn fold(&mut self, node: &Node, fold: &Fold) -> Bounds {
        let mut cost = self.node(&fold.range).plus(self.node(&fold.init));
        let depth = self.locals.len();
        let init = Local {
            name: Arc::clone(&fold.accumulator),
            path: self.path(&fold.init),
            size: self.size(&fold.init),
            entries: self.entries_of(&fold.init),
        };
        self.locals.push(init);
        if fold.is_binding() {
            cost = cost.plus(self.node(&fold.result));
            let (size, entries) = (self.size(&fold.result), self.entries_of(&fold.result));
            self.locals.truncate(depth);
            self.sizes.extend(size.map(|size| (node.id, size)));
            self.entries.extend(entries.map(|entries| (node.id, entries)));
            return cost;
        }
        self.push_variables(fold);
        let step = self.node(&fold.condition).plus(self.node(&fold.step));
        self.locals.truncate(depth + 1);
        cost = cost.plus(self.node(&fold.result));
        let of_step = self.entries_of(&fold.step);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                let size = self.size(&fold.init);
                self.sizes.extend(size.map(|size| (node.id, size)));
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.sizes.insert(node.id, count);
                self.entries.extend(of_step.map(|entries| (node.id, entries)));
            }
            _ => {}
        }
        cost.plus(count.times(step))
    }

    fn push_variables(&mut self, fold: &Fold) {
        let entries = self.entries_of(&fold.range);
        let is_list = entries
            .map_or_else(|| matches!(self.type_of(&fold.range), Type::List(_)), |entries| entries.is_list);
        let path = self.path(&fold.range);
        let mut push = |name: &Arc<str>, size: Option<Bounds>, part: &str| {
            let mut path = path.clone();
            path.push(part.into());
            self.locals.push(Local { name: Arc::clone(name), path, size, entries: None });
        };
        let (key, value) = (entries.map(|entries| entries.key), entries.map(|entries| entries.value));
        match &fold.second {
            Some(second) => {
                push(&fold.variable, key, if is_list { "@indices" } else { "@keys" });
                push(second, value, if is_list { "@items" } else { "@values" });
            }
            None if is_list => push(&fold.variable, value, "@items"),
            None => push(&fold.variable, key, "@keys"),
        }
    }

    fn call(&mut self, node: &Node, function: &str, target: Option<&Node>, args: &[Node]) -> Bounds {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.node(arg);
            let (size, entries) = (self.size(arg), self.entries_of(arg));
            self.sizes.extend(size.map(|size| (node.id, size)));
            self.entries.extend(entries.map(|entries| (node.id, entries)));
            return cost.plus(Bounds::exactly(1));
        }
        let costs: Vec<Bounds> = args.iter().map(|arg| self.node(arg)).collect();
        let overloads = self.checked.overloads.get(node.id).cloned().unwrap_or_default();
        if overloads.is_empty() {
            return Bounds::exactly(0);
        }
        let own = target.map_or(Bounds::exactly(0), |target| self.node(target));
        let mut cost = Bounds { min: u64::MAX, max: 0 };
        let mut size: Option<Bounds> = None;
        for overload in overloads {
            let found = self.overload(node, (function, overload), target, args, &costs);
            cost = cost.either(found.cost);
            size = match (size, found.size) {
                (Some(a), Some(b)) => Some(a.either(b)),
                (a, b) => a.or(b),
            };
            if let ("index_list" | "index_map", [of, ..]) = (overload, args) {
                size = self.entries_of(of).map(|entries| entries.value);
                let mut path = self.path(of);
                path.push(if overload == "index_list" { "@items" } else { "@values" }.into());
                self.paths.insert(node.id, path);
            }
            size = size.or_else(|| self.size(node));
        }
        self.sizes.extend(size.map(|size| (node.id, size)));
        own.plus(cost)
    }

    /// Returns what one form of a function costs, with its arguments.
    fn overload(
        &mut self,
        node: &Node,
        (function, overload): (&str, &str),
        target: Option<&Node>,
        args: &[Node],
        costs: &[Bounds],
    ) -> Call {
        let all = costs.iter().fold(Bounds::exactly(0), |sum, cost| sum.plus(*cost));
        let of_library = self.library(function, overload, target, args);
        if let Some(call) = of_library {
            return Call { cost: call.cost.plus(all), size: call.size };
        }
        let size = |index: usize| args.get(index).map_or(UNKNOWN, |arg| self.size_or_unknown(arg));
        let own = || target.map_or(UNKNOWN, |target| self.size_or_unknown(target));
        let is_plus = matches!(overload, "add_string" | "add_bytes" | "add_list");
        let plain = |cost: Bounds| Call { cost: cost.plus(all), size: None };
        match (overload, args) {
            ("string_format", _) => plain(own().scaled(TRAVERSAL)),
            ("string_to_bytes", [_]) => {
                let (cost, of) = (size(0).scaled(TRAVERSAL), size(0));
                Call {
                    cost: cost.plus(all),
                    size: Some(Bounds { min: of.min, max: of.max.saturating_mul(4) }),
                }
            }
            ("bytes_to_string", [_]) => {
                let (cost, of) = (size(0).scaled(TRAVERSAL), size(0));
                Call { cost: cost.plus(all), size: Some(Bounds { min: of.min / 4, max: of.max }) }
            }
            ("strings_quote", [_]) => {
                let (cost, of) = (size(0).scaled(TRAVERSAL), size(0));
                let size =
                    Bounds { min: of.min.saturating_add(2), max: of.max.saturating_mul(2).saturating_add(2) };
                Call { cost: cost.plus(all), size: Some(size) }
            }
            ("starts_with_string" | "ends_with_string", [_]) => plain(size(0).scaled(TRAVERSAL)),
            ("in_list", [_, _]) => plain(size(1)),
            ("matches_string", [_]) => {
                let text = own().plus(Bounds::exactly(1)).scaled(TRAVERSAL);
                plain(text.times(size(0).scaled(REGULAR)))
            }
            ("contains_string", [_]) => plain(own().scaled(TRAVERSAL).times(size(0).scaled(TRAVERSAL))),
            ("logical_or" | "logical_and", [_, _]) => {
                let first = costs.first().copied().unwrap_or(UNKNOWN);
                Call { cost: Bounds { min: first.min, max: all.max }, size: None }
            }
            ("conditional", [_, yes, no]) => {
                let entries = Entries::either(self.entries_of(yes), self.entries_of(no));
                let size = self.size_or_unknown(yes).either(self.size_or_unknown(no));
                self.entries.extend(entries.map(|entries| (node.id, entries)));
                let cost = |index: usize| costs.get(index).copied().unwrap_or(UNKNOWN);
                Call { cost: cost(0).plus(cost(1).either(cost(2))), size: Some(size) }
            }
            (_, [a, b]) if is_plus => {
                let sum = size(0).plus(size(1));
                let entries = Entries::either(self.entries_of(a), self.entries_of(b));
                self.entries.extend(entries.map(|entries| (node.id, entries)));
                let cost = if overload == "add_list" { Bounds::exactly(1) } else { sum.scaled(TRAVERSAL) };
                Call { cost: cost.plus(all), size: Some(sum) }
            }
            (_, [_, _]) if is_comparison(overload) => {
                let most = size(0).max.min(size(1).max);
                plain(Bounds { min: u64::from(most > 0), max: most }.scaled(TRAVERSAL))
            }
            _ => plain(Bounds::exactly(1)),
        }
    }

    /// Returns what a function of Kubernetes costs; `None` if it has no cost of its own.
    #[expect(clippy::too_many_lines, reason = "one table of functions and their costs")]
    fn library(&self, function: &str, overload: &str, target: Option<&Node>, args: &[Node]) -> Option<Call> {
        let one = Some(Call { cost: Bounds::exactly(1), size: None });
        let plain = |cost: Bounds| Some(Call { cost, size: None });
        let sized = |cost: Bounds, size: Bounds| Some(Call { cost, size: Some(size) });
        let own = target.map(|target| self.size_or_unknown(target));
        let first = args.first().map(|arg| self.size_or_unknown(arg));
        let address = Bounds { min: 4, max: 16 };
        match function {
            "check" => plain(Bounds::exactly(350_000)),
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => one,
            "fieldSelector" | "labelSelector" => {
                let length = first?;
                plain(
                    Bounds::exactly(10).plus(length.scaled(TRAVERSAL)).plus(length.scaled(0.5).scaled(50.0)),
                )
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let cost = match self.type_of(target?) {
                    Type::List(element) => {
                        let item = match *element {
                            Type::String | Type::Bytes => self.item_size(target?).scaled(TRAVERSAL),
                            _ => Bounds::exactly(0),
                        };
                        own?.times(item.plus(Bounds::exactly(1)))
                    }
                    _ => own?.scaled(TRAVERSAL),
                };
                plain(cost)
            }
            "url" => sized(first?.scaled(TRAVERSAL), first?),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => sized(own?.scaled(TRAVERSAL), own?),
            "replace" => {
                let with = args.get(1).map(|arg| self.size_or_unknown(arg))?;
                sized(own?.scaled(2.0 * TRAVERSAL), replaced(own?, first?, with))
            }
            "split" => {
                let most = match args.get(1).map(|arg| &arg.kind) {
                    Some(Kind::Literal(Value::Int(most))) => most.cast_unsigned(),
                    _ => own?.max,
                };
                sized(own?.scaled(2.0 * TRAVERSAL), Bounds { min: 0, max: most })
            }
            "join" => {
                let mut size = own?.times(self.item_size(target?));
                if let Some(separator) = first {
                    let gaps = Bounds { min: own?.min.saturating_sub(1), max: own?.max.saturating_sub(1) };
                    size = size.plus(separator.times(gaps));
                }
                sized(size.scaled(TRAVERSAL), size)
            }
            "find" | "findAll" => {
                let text = own?.plus(Bounds::exactly(1)).scaled(TRAVERSAL);
                sized(text.times(first?.scaled(REGULAR)), Bounds { min: 0, max: own?.max })
            }
            "ip" if overload == "cidr_ip" => one,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                plain(first?.scaled(TRAVERSAL))
            }
            "ip.isCanonical" => plain(first?.scaled(2.0 * TRAVERSAL)),
            "containsIP" | "containsCIDR" => {
                let mut cost = address.plus(address).scaled(TRAVERSAL);
                if function == "containsCIDR" {
                    cost = cost.plus(address.scaled(TRAVERSAL)).plus(Bounds::exactly(1));
                }
                if overload.ends_with("_string") {
                    cost = cost.plus(first?.scaled(TRAVERSAL));
                }
                plain(cost)
            }
            "validate" => plain(first?.scaled(TRAVERSAL).scaled(128.0 * REGULAR)),
            "_==_" => {
                match (args.first().map(|arg| self.type_of(arg))?, args.get(1).map(|arg| self.type_of(arg))?)
                {
                    (Type::Opaque(a), Type::Opaque(b)) if a == b => match a {
                        "kubernetes.NamedFormat" => plain(Bounds { min: 1, max: 64 }.scaled(TRAVERSAL)),
                        "kubernetes.URL" => {
                            let most = args
                                .get(1)
                                .and_then(|arg| self.sizes.get(&arg.id))
                                .map_or(1, |size| size.max);
                            plain(Bounds { min: 1, max: most }.scaled(TRAVERSAL))
                        }
                        _ => one,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn type_of(&self, node: &Node) -> Type {
        self.checked.types.get(node.id).cloned().unwrap_or(Type::Dyn)
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn path(&self, node: &Node) -> Path {
        if let Kind::Ident(name) = &node.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&node.id).cloned().unwrap_or_default()
    }

    fn size_or_unknown(&self, node: &Node) -> Bounds {
        self.size(node).unwrap_or(UNKNOWN)
    }

    fn size(&self, node: &Node) -> Option<Bounds> {
        if let Some(size) = self.sizes.get(&node.id) {
            return Some(*size);
        }
        let count = |length: usize| Some(Bounds::exactly(u64::try_from(length).unwrap_or(u64::MAX)));
        match &node.kind {
            Kind::Literal(value) => return Some(Bounds::exactly(value.size())),
            Kind::List { items, .. } => return count(items.len()),
            Kind::Map(entries) => return count(entries.len()),
            _ => {}
        }
        if let Some(size) = self.declared(&self.path(node)) {
            return Some(size);
        }
        if self.type_of(node).is_scalar() {
            return Some(Bounds::exactly(1));
        }
        match &node.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    /// Returns the size of the items of a list.
    fn item_size(&self, list: &Node) -> Bounds {
        let mut path = self.path(list);
        if path.is_empty() {
            return UNKNOWN;
        }
        path.push("@items".into());
        self.declared(&path).unwrap_or(UNKNOWN)
    }

    fn entries_of(&self, node: &Node) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&node.id) {
            return Some(*entries);
        }
        match &node.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }

    /// Returns the size that the schema allows at a path.
    fn declared(&self, path: &[Arc<str>]) -> Option<Bounds> {
        let (_, steps) = path.split_first()?;
        let mut declared = self.root?;
        for step in steps {
            declared = match &**step {
                "@items" | "@values" => declared.element.as_deref()?,
                "@keys" => declared.key.as_deref()?,
                field => declared.fields.get(field).or_else(|| declared.fields.get(Declared::ANY))?,
            };
        }
        Some(Bounds { min: 0, max: declared.max_elements })
    }
}

fn is_comparison(overload: &str) -> bool {
    let of_text = ["less_", "greater_"].iter().any(|start| overload.starts_with(start))
        && (overload.ends_with("_string") || overload.ends_with("_bytes"));
    of_text || matches!(overload, "equals" | "not_equals")
}
