//! What differs from render to render: passwords, numbers, identifiers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::args::{Answer, INT, STRING, int, string};
use crate::value::{CallError, Context, Function, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("randAlpha", &[INT], STRING, |context, args| {
        password(context, int(args, 0), |byte| byte.is_ascii_alphabetic())
    }),
    Function::new("randAlphaNum", &[INT], STRING, |context, args| {
        password(context, int(args, 0), |byte| byte.is_ascii_alphanumeric())
    }),
    Function::new("randAscii", &[INT], STRING, |context, args| {
        password(context, int(args, 0), |byte| (b' '..=b'~').contains(&byte))
    }),
    Function::new("randBytes", &[INT], STRING, random_bytes),
    Function::new("randInt", &[INT, INT], INT, random_int),
    Function::new("randNumeric", &[INT], STRING, |context, args| {
        password(context, int(args, 0), |byte| byte.is_ascii_digit())
    }),
    Function::new("shuffle", &[STRING], STRING, |context, args| {
        Ok(shuffled(context, &string(args, 0)).into())
    }),
    Function::new("uuidv4", &[], STRING, |context, _| Ok(uuid(context).into())),
];

/// Returns a text of `len` characters out of those that `allowed` allows.
///
/// Other bytes are thrown away, which keeps all characters equally likely.
fn password(context: &mut dyn Context, len: i64, allowed: fn(u8) -> bool) -> Answer {
    let len = usize::try_from(len).unwrap_or_default();
    context.charge(len)?;
    let mut text = String::with_capacity(len);
    let mut pool = [0; 256];
    while text.len() < len {
        context.environment().random(&mut pool);
        let chosen = pool.iter().copied().filter(|byte| allowed(*byte));
        text.extend(chosen.take(len - text.len()).map(char::from));
    }
    Ok(text.into())
}

fn random_bytes(context: &mut dyn Context, args: &[Value]) -> Answer {
    let Ok(len) = usize::try_from(int(args, 0)) else {
        return Err(CallError::new("runtime error: makeslice: len out of range"));
    };
    context.charge(len.saturating_mul(2))?;
    let mut bytes = vec![0; len];
    context.environment().random(&mut bytes);
    Ok(STANDARD.encode(bytes).into())
}

/// Returns a number below `end`, all equally likely.
fn below(context: &mut dyn Context, end: u64) -> u64 {
    let end = end.max(1);
    // Numbers of the last, incomplete round are thrown away.
    let fair = u64::MAX - u64::MAX % end;
    loop {
        let mut bytes = [0; 8];
        context.environment().random(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < fair {
            return number % end;
        }
    }
}

fn random_int(context: &mut dyn Context, args: &[Value]) -> Answer {
    let (min, max) = (int(args, 0), int(args, 1));
    let Some(range) = max.checked_sub(min).filter(|range| *range > 0) else {
        return Err(CallError::new("invalid argument to Intn"));
    };
    let number = below(context, range.unsigned_abs());
    Ok(Value::Int(min.wrapping_add_unsigned(number)))
}

fn shuffled(context: &mut dyn Context, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for last in (1..chars.len()).rev() {
        let other = below(context, last as u64 + 1);
        chars.swap(last, usize::try_from(other).unwrap_or(last));
    }
    chars.into_iter().collect()
}

fn uuid(context: &mut dyn Context) -> String {
    let mut bytes = [0; 16];
    context.environment().random(&mut bytes);
    let number = u128::from_be_bytes(bytes);
    // Version 4, variant 10.
    let number = (number & !(0xf << 76)) | (0x4 << 76);
    let number = (number & !(0x3 << 62)) | (0x2 << 62);
    let hex = format!("{number:032x}");
    let mut text = String::with_capacity(36);
    for (index, digit) in hex.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}
