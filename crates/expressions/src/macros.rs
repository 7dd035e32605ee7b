//! Macros beside those of the parser: loops with two variables, and what is done with a value that may be missing.

use cel::Env;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators,
};
use cel::parser::{Macro, MacroExprHelper};

use crate::tree::RESULT;

type Expanded = Result<Option<IdedExpr>, cel::ParseError>;

/// Returns what reads expressions.
pub(crate) fn environment() -> Env {
    let mut environment = Env::stdlib();
    let mut add = |name: &str, count: usize, expand: Expand| {
        let made = Macro::receiver(name, count, expand);
        // A macro that is there already stays.
        let _ = environment.add_macro(made);
    };
    add("all", 3, all);
    add("exists", 3, exists);
    add("existsOne", 3, exists_one);
    add("exists_one", 3, exists_one);
    for count in [3, 4] {
        add("transformList", count, transform_list);
        add("transformMap", count, transform_map);
        add("transformMapEntry", count, transform_entry);
    }
    add("optMap", 2, optional_map);
    add("optFlatMap", 2, optional_flat_map);
    environment
}

/// Returns what reads expressions in which a value can be given a name: `cel.bind(name, value, expression)`.
pub(crate) fn binding_environment() -> Env {
    let mut environment = environment();
    // Nothing else is called so.
    let _ = environment.add_macro(Macro::receiver("bind", 3, bind as Expand));
    environment
}

type Expand = fn(&mut MacroExprHelper<'_>, &mut Option<IdedExpr>, &mut Vec<IdedExpr>) -> Expanded;

/// What loops over keys and values.
struct Loop {
    range: IdedExpr,
    variables: (String, String),
    init: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

impl Loop {
    fn build(self, helper: &mut MacroExprHelper<'_>) -> IdedExpr {
        helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.range,
            iter_var: self.variables.0,
            iter_var2: Some(self.variables.1),
            accu_var: RESULT.to_owned(),
            accu_init: self.init,
            loop_cond: self.condition,
            loop_step: self.step,
            result: self.result,
        })))
    }
}

fn call(helper: &mut MacroExprHelper<'_>, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

fn method(helper: &mut MacroExprHelper<'_>, function: &str, target: IdedExpr) -> IdedExpr {
    let target = Some(Box::new(target));
    helper.next_expr(Expr::Call(CallExpr { func_name: function.to_owned(), target, args: Vec::new() }))
}

fn truth(helper: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn number(helper: &mut MacroExprHelper<'_>, value: i64) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
}

fn result(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    helper.next_expr(Expr::Ident(RESULT.to_owned()))
}

/// Takes the name of a variable.
fn name(helper: &MacroExprHelper<'_>, from: &IdedExpr) -> Result<String, cel::ParseError> {
    match &from.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(helper.new_error(from.id, "argument must be a simple name")),
    }
}

/// The range, the two variables, and what follows them.
type Parts = (IdedExpr, (String, String), Vec<IdedExpr>);

/// Takes the range, the two variables, and what follows them.
fn parts(
    helper: &MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Result<Option<Parts>, cel::ParseError> {
    let [first, second, ..] = args.as_slice() else { return Ok(None) };
    let variables = (name(helper, first)?, name(helper, second)?);
    let Some(range) = target.take() else { return Ok(None) };
    Ok(Some((range, variables, args.drain(..).skip(2).collect())))
}

fn all(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    quantified(helper, target, args, true)
}

fn exists(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    quantified(helper, target, args, false)
}

/// `all` and `exists`: the loop ends where the answer is known.
fn quantified(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    for_all: bool,
) -> Expanded {
    let Some((range, variables, mut rest)) = parts(helper, target, args)? else { return Ok(None) };
    let Some(predicate) = rest.pop() else { return Ok(None) };
    let init = truth(helper, for_all);
    let known = result(helper);
    let known = if for_all { known } else { call(helper, operators::LOGICAL_NOT, vec![known]) };
    let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![known]);
    let before = result(helper);
    let operator = if for_all { operators::LOGICAL_AND } else { operators::LOGICAL_OR };
    let step = call(helper, operator, vec![before, predicate]);
    let result = result(helper);
    Ok(Some(Loop { range, variables, init, condition, step, result }.build(helper)))
}

fn exists_one(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    let Some((range, variables, mut rest)) = parts(helper, target, args)? else { return Ok(None) };
    let Some(predicate) = rest.pop() else { return Ok(None) };
    let init = number(helper, 0);
    let condition = truth(helper, true);
    let (before, one) = (result(helper), number(helper, 1));
    let more = call(helper, operators::ADD, vec![before, one]);
    let same = result(helper);
    let step = call(helper, operators::CONDITIONAL, vec![predicate, more, same]);
    let (count, one) = (result(helper), number(helper, 1));
    let result = call(helper, operators::EQUALS, vec![count, one]);
    Ok(Some(Loop { range, variables, init, condition, step, result }.build(helper)))
}

/// Builds a loop that adds to `init` what `add` makes of the transformed item.
fn transform(
    helper: &mut MacroExprHelper<'_>,
    (target, args): (&mut Option<IdedExpr>, &mut Vec<IdedExpr>),
    init: Expr,
    add: impl FnOnce(&mut MacroExprHelper<'_>, &str, IdedExpr) -> IdedExpr,
) -> Expanded {
    let Some((range, variables, mut rest)) = parts(helper, target, args)? else { return Ok(None) };
    let Some(item) = rest.pop() else { return Ok(None) };
    let init = helper.next_expr(init);
    let condition = truth(helper, true);
    let mut step = add(helper, &variables.0, item);
    if let Some(filter) = rest.pop() {
        let same = result(helper);
        step = call(helper, operators::CONDITIONAL, vec![filter, step, same]);
    }
    let result = result(helper);
    Ok(Some(Loop { range, variables, init, condition, step, result }.build(helper)))
}

fn transform_list(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    transform(helper, (target, args), Expr::List(ListExpr::new(Vec::new())), |helper, _, item| {
        let before = result(helper);
        let item = helper.next_expr(Expr::List(ListExpr::new(vec![item])));
        call(helper, operators::ADD, vec![before, item])
    })
}

fn transform_map(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    transform(helper, (target, args), Expr::Map(MapExpr::default()), |helper, key, item| {
        let before = result(helper);
        let key = helper.next_expr(Expr::Ident(key.to_owned()));
        call(helper, "cel.@mapInsert", vec![before, key, item])
    })
}

fn transform_entry(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    transform(helper, (target, args), Expr::Map(MapExpr::default()), |helper, _, item| {
        let before = result(helper);
        call(helper, "cel.@mapInsert", vec![before, item])
    })
}

fn optional_map(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    of_optional(helper, target, args, true)
}

fn optional_flat_map(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    of_optional(helper, target, args, false)
}

/// `a.hasValue() ? optional.of(…) : optional.none()`, with the value of `a` under a name.
fn of_optional(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    wraps: bool,
) -> Expanded {
    let [first, _] = args.as_slice() else { return Ok(None) };
    let Expr::Ident(variable) = &first.expr else {
        let of = if wraps { "optMap" } else { "optFlatMap" };
        return Err(helper.new_error(first.id, format!("{of}() variable name must be a simple identifier")));
    };
    let variable = variable.clone();
    let (Some(from), Some(body)) = (target.take(), args.pop()) else { return Ok(None) };
    let has_value = method(helper, "hasValue", from.clone());
    let value = method(helper, "value", from);
    let bound = named(helper, variable, value, body);
    let then = if wraps { call(helper, "optional.of", vec![bound]) } else { bound };
    let none = call(helper, "optional.none", Vec::new());
    Ok(Some(call(helper, operators::CONDITIONAL, vec![has_value, then, none])))
}

fn bind(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Expanded {
    if !target.as_ref().is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "cel")) {
        return Ok(None);
    }
    let [first, _, _] = args.as_slice() else { return Ok(None) };
    let Expr::Ident(variable) = &first.expr else {
        return Err(helper.new_error(first.id, "cel.bind() variable names must be simple identifiers"));
    };
    let variable = variable.clone();
    let (Some(body), Some(value)) = (args.pop(), args.pop()) else { return Ok(None) };
    target.take();
    Ok(Some(named(helper, variable, value, body)))
}

/// Gives a value a name in an expression: a loop that never runs, whose result is the expression.
fn named(helper: &mut MacroExprHelper<'_>, variable: String, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    let iter_range = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    let loop_cond = truth(helper, false);
    let loop_step = helper.next_expr(Expr::Ident(variable.clone()));
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable,
        accu_init: value,
        loop_cond,
        loop_step,
        result: body,
    })))
}
