//! Arithmetic.

use super::args::{ANY, Answer, FLOAT, INT, INT64, STRING, any, from, int};
use super::convert::{to_f64, to_i64};
use super::decimal::Decimal;
use crate::value::{CallError, Context, Function, List, ListType, Type, Value};

const INTS: Type = Type::List(&ListType::INTS);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("add", &[ANY], INT64, |_, args| Ok(fold(args, 0, i64::wrapping_add))),
    Function::new("add1", &[ANY], INT64, |_, args| Ok(Value::Int64(to_i64(any(args, 0)).wrapping_add(1)))),
    Function::new("add1f", &[ANY], FLOAT, |_, args| {
        let one = [any(args, 0).clone(), Value::Int(1)];
        decimal(&one, |a, b| Ok(a.plus(b)))
    }),
    Function::variadic("addf", &[ANY], FLOAT, |_, args| {
        let terms: Vec<Value> = std::iter::once(Value::Float(0.0)).chain(args.iter().cloned()).collect();
        decimal(&terms, |a, b| Ok(a.plus(b)))
    }),
    Function::variadic("biggest", &[ANY, ANY], INT64, |_, args| {
        Ok(fold(from(args, 1), to_i64(any(args, 0)), i64::max))
    }),
    Function::new("ceil", &[ANY], FLOAT, |_, args| Ok(to_f64(any(args, 0)).ceil().into())),
    Function::new("div", &[ANY, ANY], INT64, |_, args| divided(args, i64::wrapping_div)),
    Function::variadic("divf", &[ANY, ANY], FLOAT, |_, args| {
        decimal(args, |a, b| a.divided_by(b).ok_or_else(|| CallError::new("decimal division by 0")))
    }),
    Function::new("floor", &[ANY], FLOAT, |_, args| Ok(to_f64(any(args, 0)).floor().into())),
    Function::variadic("max", &[ANY, ANY], INT64, |_, args| {
        Ok(fold(from(args, 1), to_i64(any(args, 0)), i64::max))
    }),
    Function::variadic("maxf", &[ANY, ANY], FLOAT, |_, args| Ok(fold_float(args, greater))),
    Function::variadic("min", &[ANY, ANY], INT64, |_, args| {
        Ok(fold(from(args, 1), to_i64(any(args, 0)), i64::min))
    }),
    Function::variadic("minf", &[ANY, ANY], FLOAT, |_, args| Ok(fold_float(args, |a, b| -greater(-a, -b)))),
    Function::new("mod", &[ANY, ANY], INT64, |_, args| divided(args, i64::wrapping_rem)),
    Function::variadic("mul", &[ANY, ANY], INT64, |_, args| {
        Ok(fold(from(args, 1), to_i64(any(args, 0)), i64::wrapping_mul))
    }),
    Function::variadic("mulf", &[ANY, ANY], FLOAT, |_, args| decimal(args, |a, b| Ok(a.times(b)))),
    Function::variadic("round", &[ANY, INT, FLOAT], FLOAT, |_, args| Ok(round(args).into())),
    Function::variadic("seq", &[INT], STRING, sequence),
    Function::new("sub", &[ANY, ANY], INT64, |_, args| {
        Ok(Value::Int64(to_i64(any(args, 0)).wrapping_sub(to_i64(any(args, 1)))))
    }),
    Function::variadic("subf", &[ANY, ANY], FLOAT, |_, args| decimal(args, |a, b| Ok(a.minus(b)))),
    Function::new("until", &[INT], INTS, |context, args| {
        let end = int(args, 0);
        ints(context, 0, end, if end < 0 { -1 } else { 1 })
    }),
    Function::new("untilStep", &[INT, INT, INT], INTS, |context, args| {
        ints(context, int(args, 0), int(args, 1), int(args, 2))
    }),
];

fn fold(args: &[Value], first: i64, operation: fn(i64, i64) -> i64) -> Value {
    Value::Int64(args.iter().map(to_i64).fold(first, operation))
}

fn fold_float(args: &[Value], operation: fn(f64, f64) -> f64) -> Value {
    let first = to_f64(any(args, 0));
    from(args, 1).iter().map(to_f64).fold(first, operation).into()
}

/// Returns the greater number; one that is not a number wins unless the other is infinite.
fn greater(a: f64, b: f64) -> f64 {
    if a == f64::INFINITY || b == f64::INFINITY {
        f64::INFINITY
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        // Of two zeros the positive one is greater.
        if a.total_cmp(&b).is_gt() { a } else { b }
    }
}

fn divided(args: &[Value], operation: fn(i64, i64) -> i64) -> Answer {
    match to_i64(any(args, 1)) {
        0 => Err(CallError::new("runtime error: integer divide by zero")),
        divisor => Ok(Value::Int64(operation(to_i64(any(args, 0)), divisor))),
    }
}

/// Computes from the left in decimal numbers, so that 0.1 and 0.2 make 0.3.
fn decimal(args: &[Value], operation: impl Fn(&Decimal, &Decimal) -> Result<Decimal, CallError>) -> Answer {
    let mut numbers = args.iter().map(|arg| {
        let number = to_f64(arg);
        Decimal::from_f64(number)
            .ok_or_else(|| CallError::new(format!("Cannot create a Decimal from {}", go_infinite(number))))
    });
    let mut result = numbers.next().unwrap_or_else(|| Ok(Decimal::default()))?;
    for number in numbers {
        result = operation(&result, &number?)?;
    }
    Ok(result.to_f64().into())
}

fn go_infinite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

/// Rounds to decimal places; the third argument is the fraction from which on it goes up.
fn round(args: &[Value]) -> f64 {
    let number = to_f64(any(args, 0));
    let places = int(args, 1).clamp(-400, 400);
    let up_from = match args.get(2) {
        Some(Value::Float(fraction)) => *fraction,
        _ => 0.5,
    };
    // Reading the power as text gives the nearest number, which Go's table gives too.
    let power: f64 = format!("1e{places}").parse().unwrap_or(f64::INFINITY);
    let shifted = power * number;
    let rounded = if shifted - shifted.trunc() >= up_from { shifted.ceil() } else { shifted.floor() };
    rounded / power
}

/// Returns the numbers from `start` on until `end`, which is not one of them.
fn steps(context: &mut dyn Context, start: i64, end: i64, step: i64) -> Result<Vec<i64>, CallError> {
    if step == 0 || (end < start) != (step < 0) {
        return Ok(Vec::new());
    }
    let distance = start.abs_diff(end);
    let count = distance.div_ceil(step.unsigned_abs());
    context.charge(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size_of::<Value>()))?;
    let mut numbers = Vec::new();
    let mut next = start;
    for _ in 0..count {
        numbers.push(next);
        next = next.wrapping_add(step);
    }
    Ok(numbers)
}

fn ints(context: &mut dyn Context, start: i64, end: i64, step: i64) -> Answer {
    let numbers = steps(context, start, end, step)?;
    let numbers = numbers.into_iter().map(Value::Int).collect();
    Ok(Value::List(List::of(&ListType::INTS, numbers)))
}

/// Writes numbers as the program `seq` does: END, START END or START STEP END.
fn sequence(context: &mut dyn Context, args: &[Value]) -> Answer {
    let numbers = match args.len() {
        1 => (1, 0, int(args, 0)),
        2 => (int(args, 0), 0, int(args, 1)),
        3 => (int(args, 0), int(args, 1), int(args, 2)),
        _ => return Ok("".into()),
    };
    let (start, step, end) = numbers;
    let towards = if end < start { -1 } else { 1 };
    let step = if args.len() == 3 { step } else { towards };
    if args.len() == 3 && end < start && step > 0 {
        return Ok("".into());
    }
    let numbers = steps(context, start, end.wrapping_add(towards), step)?;
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(texts.join(" ").into())
}
