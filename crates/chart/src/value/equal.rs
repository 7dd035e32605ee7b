//! Equality of whole values: `reflect.DeepEqual`.

use std::rc::Rc;

use super::{MAX_NESTING, Value};

impl Value {
    /// Reports whether both are of the same type and hold the same: `int` 1 and
    /// `float64` 1 differ, a nil list and an empty one too.
    ///
    /// Values that are nested deeper than [`MAX_NESTING`], or need more than
    /// `MAX_PAIRS` comparisons, differ unless they are the same.
    pub fn deep_equal(&self, other: &Self) -> bool {
        deep_equal(self, other, 0, &mut 0)
    }
}

/// How many pairs of values one comparison looks at: a value may hold another one many times.
const MAX_PAIRS: usize = 10_000_000;

fn deep_equal(a: &Value, b: &Value, depth: usize, count: &mut usize) -> bool {
    *count += 1;
    if depth > MAX_NESTING || *count > MAX_PAIRS {
        return false;
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Small(ta, a), Value::Small(tb, b)) => ta == tb && a == b,
        (Value::Uint(ta, a), Value::Uint(tb, b)) => ta == tb && a == b,
        (Value::Float(a), Value::Float(b)) => same_float(*a, *b),
        (Value::Complex(ar, ai), Value::Complex(br, bi)) => same_float(*ar, *br) && same_float(*ai, *bi),
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.class().name == b.class().name
                && (a.same(b)
                    || (a.is_nil() == b.is_nil()
                        && a.len() == b.len()
                        && a.items()
                            .iter()
                            .zip(b.items().iter())
                            .all(|(a, b)| deep_equal(a, b, depth + 1, count))))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.class().name == b.class().name
                && (a.same(b)
                    || (a.is_nil() == b.is_nil()
                        && a.len() == b.len()
                        && a.entries().iter().zip(b.entries().iter()).all(|((key_a, a), (key_b, b))| {
                            key_a == key_b && deep_equal(a, b, depth + 1, count)
                        })))
        }
        (Value::Object(a), Value::Object(b)) => {
            Rc::ptr_eq(a, b)
                || (a.type_name() == b.type_name()
                    && match (a.underlying(), b.underlying()) {
                        (Some(a), Some(b)) => deep_equal(&a, &b, depth + 1, count),
                        (None, None) => {
                            let (fields_a, fields_b) = (a.fields(), b.fields());
                            a.display() == b.display()
                                && fields_a.len() == fields_b.len()
                                && fields_a
                                    .iter()
                                    .zip(&fields_b)
                                    .all(|((_, a), (_, b))| deep_equal(a, b, depth + 1, count))
                        }
                        (Some(_), None) | (None, Some(_)) => false,
                    })
        }
        _ => false,
    }
}

#[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
fn same_float(a: f64, b: f64) -> bool {
    a == b
}
