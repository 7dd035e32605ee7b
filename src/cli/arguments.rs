//! Builds arguments and options of commands.

use clap::{Arg, ArgAction};

/// Returns an option that is on or off.
pub(super) fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Returns an option with a text, which is called `value` in the help.
pub(super) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    argument(name, value, help).long(name)
}

/// Returns an argument without a flag, which is called `value` in the help.
pub(super) fn argument(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value).help(help)
}
