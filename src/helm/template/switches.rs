//! Flags as Go's command line library reads them.

use super::arguments::TemplateArgs;

/// The flags that are on or off.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Switches {
    pub(super) include_crds: bool,
    pub(super) is_upgrade: bool,
    pub(super) no_hooks: bool,
    pub(super) skip_schema_validation: bool,
    pub(super) skip_tests: bool,
    pub(super) validate: bool,
}

impl Switches {
    /// Reads the flags, or says which one is neither on nor off.
    pub(super) fn read(args: &TemplateArgs) -> Result<Self, String> {
        Ok(Self {
            include_crds: is_on("include-crds", args.include_crds.as_deref())?,
            is_upgrade: is_on("is-upgrade", args.is_upgrade.as_deref())?,
            no_hooks: is_on("no-hooks", args.no_hooks.as_deref())?,
            skip_schema_validation: is_on("skip-schema-validation", args.skip_schema_validation.as_deref())?,
            skip_tests: is_on("skip-tests", args.skip_tests.as_deref())?,
            validate: is_on("validate", args.validate.as_deref())?,
        })
    }
}

fn is_on(flag: &str, text: Option<&str>) -> Result<bool, String> {
    match text {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
        None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
        Some(other) => {
            let quoted = golang::strconv::quote(other.as_bytes());
            Err(format!(
                "invalid argument {quoted} for \"--{flag}\" flag: strconv.ParseBool: parsing {quoted}: invalid syntax"
            ))
        }
    }
}

/// Returns the entries of a flag whose arguments are lists with commas; quotes keep a comma.
pub(super) fn listed(flag: &str, arguments: &[String]) -> Result<Vec<String>, String> {
    let mut entries = Vec::new();
    for argument in arguments {
        let found = split(argument).map_err(|why| {
            let quoted = golang::strconv::quote(argument.as_bytes());
            format!("invalid argument {quoted} for \"{flag}\" flag: {why}")
        })?;
        entries.extend(found);
    }
    Ok(entries)
}

/// Splits the first line of a list.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut entries = Vec::new();
    if text.is_empty() {
        return Ok(entries);
    }
    let line = text.trim_start_matches('\n');
    if line.is_empty() {
        return Err("EOF".to_owned());
    }
    let mut rest = line;
    loop {
        let (entry, behind) = if rest.starts_with('"') { quoted(line, rest)? } else { plain(line, rest)? };
        entries.push(entry);
        match behind.strip_prefix(',') {
            Some(behind) => rest = behind,
            None => return Ok(entries),
        }
    }
}

fn plain<'t>(line: &str, text: &'t str) -> Result<(String, &'t str), String> {
    let end = text.find([',', '\n']).unwrap_or(text.len());
    let (entry, behind) = text.split_at_checked(end).unwrap_or((text, ""));
    match entry.find('"') {
        Some(quote) => {
            let column = line.len() - text.len() + quote + 1;
            Err(format!("parse error on line 1, column {column}: bare \" in non-quoted-field"))
        }
        None => Ok((entry.to_owned(), behind)),
    }
}

/// Takes an entry between quotes; two quotes in it stand for one.
fn quoted<'t>(line: &str, text: &'t str) -> Result<(String, &'t str), String> {
    let mut entry = String::new();
    let mut rest = text.strip_prefix('"').unwrap_or(text);
    loop {
        let column = |rest: &str| line.len() - rest.len() + 1;
        let Some((inner, behind)) = rest.split_once('"') else {
            return Err(format!(
                "parse error on line 1, column {}: extraneous or missing \" in quoted-field",
                column("")
            ));
        };
        entry.push_str(inner);
        match behind.strip_prefix('"') {
            Some(behind) => {
                entry.push('"');
                rest = behind;
            }
            None if behind.is_empty() || behind.starts_with([',', '\n']) => return Ok((entry, behind)),
            None => {
                return Err(format!(
                    "parse error on line 1, column {}: extraneous or missing \" in quoted-field",
                    column(behind) - 1
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_go_reads_them() {
        for (text, entries) in [
            ("", &[] as &[&str]),
            ("a", &["a"]),
            ("a,b", &["a", "b"]),
            ("a,", &["a", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
        ] {
            assert_eq!(listed("-f, --values", &[text.to_owned()]).unwrap(), entries, "{text}");
        }
        let error = listed("-f, --values", &["a\"b".to_owned()]).unwrap_err();
        assert_eq!(
            error,
            r#"invalid argument "a\"b" for "-f, --values" flag: parse error on line 1, column 2: bare " in non-quoted-field"#
        );
    }

    #[test]
    fn switches_are_what_go_takes_for_true_and_false() {
        assert_eq!(is_on("no-hooks", None), Ok(false));
        assert_eq!(is_on("no-hooks", Some("T")), Ok(true));
        assert_eq!(is_on("no-hooks", Some("False")), Ok(false));
        assert_eq!(
            is_on("no-hooks", Some("maybe")).unwrap_err(),
            r#"invalid argument "maybe" for "--no-hooks" flag: strconv.ParseBool: parsing "maybe": invalid syntax"#
        );
    }
}
