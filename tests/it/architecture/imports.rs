//! Which file imports which, read from the sources: no circle of imports crosses a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{is_test, root, shown, sources};

/// Circles inside a folder, and why the recursion is mutual by nature.
const CIRCLES: &[(&[&str], &str)] = &[
    (
        &[
            "crates/values/src/json_schema/compile.rs",
            "crates/values/src/json_schema/document.rs",
            "crates/values/src/json_schema/evaluate.rs",
            "crates/values/src/json_schema/metaschema.rs",
        ],
        "a schema is checked by evaluating the schema of schemas, which is compiled like any other",
    ),
    (
        &[
            "crates/chart/src/value/collection_types.rs",
            "crates/chart/src/value/signature.rs",
            "crates/chart/src/value/types.rs",
        ],
        "a type of Go has methods, methods have types, and lists and maps have types of elements",
    ),
    (
        &["crates/objects/src/patch/strategic/list.rs", "crates/objects/src/patch/strategic/merge.rs"],
        "objects hold lists, and lists hold objects",
    ),
    (
        &["crates/jq/src/collections.rs", "crates/jq/src/value.rs"],
        "values hold lists and objects, which hold values",
    ),
];

/// The most files that such a circle may have.
const LARGEST_CIRCLE: usize = 4;

#[test]
fn no_circle_of_imports_crosses_a_folder() {
    let imports = &*IMPORTS;
    let crossing: Vec<String> = imports
        .circles()
        .iter()
        .filter(|circle| circle.iter().map(|file| file.parent()).collect::<BTreeSet<_>>().len() > 1)
        .map(|circle| imports.describe(circle))
        .collect();
    assert!(crossing.is_empty(), "{}", crossing.join("\n"));
}

#[test]
fn circles_inside_a_folder_are_small_and_have_a_reason() {
    let imports = &*IMPORTS;
    let circles = imports.circles();
    let known = |circle: &BTreeSet<PathBuf>| {
        let files: Vec<String> = circle.iter().map(|file| shown(file)).collect();
        files.len() <= LARGEST_CIRCLE && CIRCLES.iter().any(|(listed, _)| *listed == files)
    };
    let unknown: Vec<String> =
        circles.iter().filter(|circle| !known(circle)).map(|circle| imports.describe(circle)).collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert_eq!(circles.len(), CIRCLES.len(), "a circle that is listed here is gone: take it from the list");
}

/// To read all files takes seconds.
static IMPORTS: LazyLock<Imports> = LazyLock::new(Imports::read);

/// A module: its crate and the names that lead to it.
type ModulePath = (String, Vec<String>);

/// The imports of the whole workspace. Imports are followed through `pub use` to the file that defines a name.
struct Imports {
    files: BTreeMap<ModulePath, File>,
    /// File → the files it imports, and the names that it takes from them.
    arrows: BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>,
}

/// What one file says.
#[derive(Default)]
struct File {
    path: PathBuf,
    /// Names that it hands on, and where they come from.
    exports: BTreeMap<String, Vec<String>>,
    /// Modules of which it hands on everything.
    globs: Vec<Vec<String>>,
    /// Paths that it uses itself.
    uses: BTreeSet<Vec<String>>,
    /// Names of items that it defines.
    items: BTreeSet<String>,
}

impl Imports {
    fn read() -> Self {
        let mut files = BTreeMap::new();
        for path in sources(&["src", "crates"]).into_iter().filter(|path| !is_test(path)) {
            let Some(module) = module_of(&path) else { continue };
            let text = std::fs::read_to_string(&path).unwrap();
            let mut file = File { path, ..File::default() };
            file.read(text.parse().unwrap());
            files.insert(module, file);
        }
        let mut imports = Self { files, arrows: BTreeMap::new() };
        let mut arrows: BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>> = BTreeMap::new();
        for (module, file) in &imports.files {
            for path in &file.uses {
                let Some(target) = imports.absolute(module, path).and_then(|path| imports.defining(&path, 0))
                else {
                    continue;
                };
                if *target != file.path {
                    let names = arrows.entry(file.path.clone()).or_default().entry(target.to_owned());
                    names.or_default().insert(path.last().unwrap().clone());
                }
            }
        }
        imports.arrows = arrows;
        imports
    }

    /// Returns the crate and path that `path` means in `module`, if it is one of this workspace.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (name, inside) = module;
        let (first, rest) = path.split_first()?;
        let child = || self.files.contains_key(&(name.clone(), [&inside[..], &path[..1]].concat()));
        match first.as_str() {
            "crate" => Some((name.clone(), rest.to_vec())),
            "self" => Some((name.clone(), [&inside[..], rest].concat())),
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                let above = &inside[..inside.len().checked_sub(up)?];
                Some((name.clone(), [above, &path[up..]].concat()))
            }
            _ if child() => Some((name.clone(), [&inside[..], path].concat())),
            other if other != name && self.files.contains_key(&(other.to_owned(), Vec::new())) => {
                Some((other.to_owned(), rest.to_vec()))
            }
            _ => None,
        }
    }

    /// Returns the file that defines the item at `path`.
    fn defining(&self, path: &ModulePath, depth: usize) -> Option<&Path> {
        let (name, names) = path;
        for length in (0..=names.len()).rev() {
            let module = (name.clone(), names[..length].to_vec());
            let Some(file) = self.files.get(&module) else { continue };
            let Some(item) = names.get(length).filter(|_| depth < 16) else { return Some(&file.path) };
            if file.items.contains(item) {
                return Some(&file.path);
            }
            let follow = |from: &[String]| {
                let (name, mut names) = self.absolute(&module, from)?;
                names.extend_from_slice(&path.1[length + usize::from(file.exports.contains_key(item))..]);
                self.defining(&(name, names), depth + 1)
            };
            if let Some(from) = file.exports.get(item) {
                return follow(from).or(Some(&file.path));
            }
            return file.globs.iter().find_map(|from| follow(from)).or(Some(&file.path));
        }
        None
    }

    /// Returns the sets of files that import each other in a circle.
    fn circles(&self) -> Vec<BTreeSet<PathBuf>> {
        let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
            self.arrows.keys().map(|file| (file, self.reached_from(file))).collect();
        let mut circles: BTreeSet<BTreeSet<PathBuf>> = BTreeSet::new();
        for (file, others) in &reached {
            let both = |other: &&&PathBuf| reached.get(**other).is_some_and(|back| back.contains(file));
            let mut circle: BTreeSet<PathBuf> =
                others.iter().filter(both).map(|other| (*other).clone()).collect();
            circle.insert((*file).clone());
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    fn reached_from<'a>(&'a self, file: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![file]);
        while let Some(next) = open.pop() {
            for target in self.arrows.get(next).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(target) {
                    open.push(target);
                }
            }
        }
        seen
    }

    fn describe(&self, circle: &BTreeSet<PathBuf>) -> String {
        let mut lines = vec![format!("a circle of {} files:", circle.len())];
        for (file, targets) in self.arrows.iter().filter(|(file, _)| circle.contains(*file)) {
            for (target, names) in targets.iter().filter(|(target, _)| circle.contains(*target)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("  {} -> {}: {}", shown(file), shown(target), names.join(", ")));
            }
        }
        lines.join("\n")
    }
}

impl File {
    /// Records what the tokens of a file, or of a group in it, import, define and name. Test code is left out.
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut public = false;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(TokenTree::Group(attribute)) = tokens.get(at + 1) {
                        at += 1;
                        if attribute.stream().to_string().replace(' ', "") == "cfg(test)" {
                            at = end_of_item(&tokens, at + 1);
                        }
                    }
                }
                TokenTree::Group(group) => {
                    // `pub(crate)` keeps what follows public.
                    if group.delimiter() != Delimiter::Parenthesis || !public {
                        public = false;
                        self.read(group.stream());
                    }
                }
                TokenTree::Ident(word) if word == "pub" => public = true,
                TokenTree::Ident(word) if word == "use" => {
                    let end = end_of_item(&tokens, at);
                    self.read_use(&[], &tokens[at + 1..end], public);
                    (at, public) = (end, false);
                }
                TokenTree::Ident(word) => {
                    let names = path_from(&tokens, at);
                    let is_item = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"]
                        .contains(&word.to_string().as_str());
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1).filter(|_| is_item) {
                        self.items.insert(name.to_string());
                    }
                    at += (names.len() - 1) * 3;
                    if names.len() > 1 {
                        self.uses.insert(names);
                    }
                    public = false;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => public = false,
            }
            at += 1;
        }
    }

    /// Records a tree of `use`, or a branch of one.
    fn read_use(&mut self, above: &[String], tokens: &[TokenTree], public: bool) {
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
        for branch in tokens.split(is_comma).filter(|branch| !branch.is_empty()) {
            let mut path = above.to_vec();
            let mut alias = None;
            for (at, token) in branch.iter().enumerate() {
                match token {
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.read_use(&path, &inner, public);
                        path.clear();
                    }
                    TokenTree::Ident(word) if word == "as" => {
                        alias = branch.get(at + 1).map(ToString::to_string);
                        break;
                    }
                    TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                    TokenTree::Ident(word) => path.push(word.to_string()),
                    TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".to_owned()),
                    TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                }
            }
            let Some(last) = path.last() else { continue };
            if !public {
                self.uses.insert(path);
            } else if last == "*" {
                path.pop();
                self.globs.push(path);
            } else {
                self.exports.insert(alias.unwrap_or_else(|| last.clone()), path);
            }
        }
    }
}

/// Returns the place behind an item: behind its body, or behind its semicolon.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_use = matches!(tokens.get(from), Some(TokenTree::Ident(word)) if word == "use");
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => !is_use && group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    tokens[from..].iter().position(ends).map_or(tokens.len(), |length| from + length)
}

/// Returns the names of the path that begins at a token.
fn path_from(tokens: &[TokenTree], at: usize) -> Vec<String> {
    let mut names = vec![tokens[at].to_string()];
    let colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    let mut next = at + 1;
    while colon(next)
        && colon(next + 1)
        && let Some(TokenTree::Ident(name)) = tokens.get(next + 2)
    {
        names.push(name.to_string());
        next += 3;
    }
    names
}

/// Returns the crate and the path of the module in a file of `src`.
fn module_of(file: &Path) -> Option<ModulePath> {
    let inside = file.strip_prefix(root()).unwrap();
    let mut parts: Vec<String> =
        inside.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    let mut name = "addon_operator".to_owned();
    if parts[0] == "crates" {
        name.clone_from(&parts[1]);
        parts.drain(..2);
    }
    if parts.remove(0) != "src" || parts == ["main"] {
        return None;
    }
    if parts == ["lib"] || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    Some((name, parts))
}
