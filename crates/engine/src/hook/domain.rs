//! DNS names, as names of webhooks and label keys have to be.

/// Returns whether `text` is a DNS name in lower case.
pub(super) fn is_domain(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = part.as_bytes();
        is_end(bytes.first())
            && is_end(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Returns whether the API server takes this as the name of a webhook.
pub(super) fn is_webhook_name(name: &str) -> bool {
    is_domain(name) && name.split('.').count() >= 3
}

/// Returns the name of a binding in the letters of a DNS name: `importantHook` becomes `important-hook`. It is empty if there
/// is no letter or digit in it.
pub(super) fn webhook_id(name: &str) -> String {
    let mut id = String::new();
    for letter in name.chars() {
        let kept = letter.to_ascii_lowercase();
        let is_kept = kept.is_ascii_lowercase() || kept.is_ascii_digit();
        if (!is_kept || letter.is_ascii_uppercase()) && !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
        if is_kept {
            id.push(kept);
        }
    }
    id.truncate(id.trim_end_matches('-').len());
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_of_any_name_has_an_id_of_dns_letters() {
        let cases = [
            ("importantHook", "important-hook"),
            ("hooks/nextHook", "hooks-next-hook"),
            ("Validate  pods!", "validate-pods"),
            ("a.b", "a-b"),
            ("utf8 странное имя", "utf8"),
            ("--", ""),
        ];
        for (name, id) in cases {
            assert_eq!(webhook_id(name), id, "{name}");
        }
    }
}
