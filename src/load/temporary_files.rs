//! Recognises temporary files of editors, volumes and programs, which are no part of a module.

/// Returns whether a file or directory of this name is a temporary one.
///
/// Those are swap files, backups and locks of editors, what Kubernetes keeps in a volume of a ConfigMap, and what Python
/// compiled: each first run of a hook in Python would be a new version of its module.
pub(super) fn is_draft(name: &str) -> bool {
    let is_swap = || {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        name.starts_with('.')
            && extension.len() <= 4
            && (extension.starts_with("sw") || extension.starts_with("un~"))
    };
    name.starts_with("..")
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || name.starts_with(".#")
        || name.ends_with(".kate-swp")
        || name.ends_with("___jb_tmp___")
        || name.ends_with("___jb_old___")
        || name.starts_with(".goutputstream-")
        || name == "4913"
        || name == "__pycache__"
        || is_swap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_told_from_files() {
        for draft in [
            "..data",
            "..2026_11_21",
            "..data_tmp",
            "__pycache__",
            "a.sh~",
            "#a.sh#",
            ".#a.sh",
            ".a.sh.swp",
            ".a.sh.swo",
            ".a.swpx",
            ".a.sh.un~",
            "a.sh.kate-swp",
            "a.sh___jb_tmp___",
            ".goutputstream-1",
            "4913",
        ] {
            assert!(is_draft(draft), "{draft}");
        }
        for file in ["a.sh", ".helmignore", "values.yaml", "#1", "swap.swp", "4914", "~", ".hidden.yaml", "a"]
        {
            assert_eq!(is_draft(file), file == "~", "{file}");
        }
    }
}
