//! Which known name a mistyped one may stand for.

/// Returns the known name that is nearest to `name`, if one is near enough to be meant.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let lower = name.to_lowercase();
    let distances = known.into_iter().map(|known| {
        let starts = lower.chars().count() >= 3 && known.to_lowercase().starts_with(&lower);
        (if starts { 1 } else { distance(&known.to_lowercase(), &lower) }, known)
    });
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

/// Returns how many letters have to change, or change places with their neighbour, to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, right) in b.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX / 2);
            let mut cost = at(&row, j) + usize::from(left != right);
            cost = cost.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(right) && b.get(j - 1) == Some(left);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
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
