//! Which known name a mistyped one may stand for.

/// Returns the known name that is nearest to `name`, if one is near enough to be meant.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let lower = name.to_lowercase();
    let distances = known.into_iter().map(|known| {
        let starts = lower.chars().count() >= 3 && known.to_lowercase().starts_with(&lower);
        (if starts { 1 } else { strsim::osa_distance(&known.to_lowercase(), &lower) }, known)
    });
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_strangers_are_not() {
        let known = ["cert-manager", "echo", "greeter", "main"];
        for (name, meant) in [
            ("greter", Some("greeter")),
            ("gretere", Some("greeter")),
            ("ehco", Some("echo")),
            ("cert-manger", Some("cert-manager")),
            ("cert", Some("cert-manager")),
            ("Main", Some("main")),
            ("prometheus", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest("echo", []), None);
    }
}
