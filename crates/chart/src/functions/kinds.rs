//! What a value is: kinds, types and equality.

use super::args::{ANY, BOOL, STRING, any, string};
use crate::value::Function;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("deepEqual", &[ANY, ANY], BOOL, |context, args| {
        super::format::charge(context, any(args, 0))?;
        Ok(any(args, 0).deep_equal(any(args, 1)).into())
    }),
    Function::new("kindIs", &[STRING, ANY], BOOL, |_, args| {
        Ok((string(args, 0) == any(args, 1).kind().name()).into())
    }),
    Function::new("kindOf", &[ANY], STRING, |_, args| Ok(any(args, 0).kind().name().into())),
    Function::new("typeIs", &[STRING, ANY], BOOL, |_, args| {
        Ok((string(args, 0) == any(args, 1).type_name()).into())
    }),
    Function::new("typeIsLike", &[STRING, ANY], BOOL, |_, args| {
        let name = any(args, 1).type_name();
        let target = string(args, 0);
        Ok((target == name || name.strip_prefix('*') == Some(&target)).into())
    }),
    Function::new("typeOf", &[ANY], STRING, |_, args| Ok(any(args, 0).type_name().into())),
];
