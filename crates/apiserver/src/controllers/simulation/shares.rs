//! A deployment that is scaled: each of its replica sets gets its share, also in the middle of a roll-out.

use std::cmp::Ordering;

use crate::cluster::Cluster;

use super::replica_sets::{Orders, ReplicaSet, ReplicaSets};

/// Returns whether a deployment was scaled since its replica sets were told how many pods they shall have.
pub(super) fn is_scaled(sets: &ReplicaSets, desired: i64) -> bool {
    sets.active().any(|set| set.told_desired().is_some_and(|told| told != desired))
}

/// Gives the replica sets of a deployment that was scaled, or is paused, as many pods as they shall have. Returns whether
/// it could: one that recreates its pods has shares for nobody.
///
/// `counted` is how many pods the status of the deployment tells.
pub(super) fn resize(
    cluster: &Cluster,
    orders: &Orders<'_>,
    sets: &ReplicaSets,
    rolls: bool,
    counted: i64,
) -> bool {
    let mut active: Vec<&ReplicaSet> = sets.active().collect();
    let only = match active.as_slice() {
        [] => sets.current.as_ref().or_else(|| sets.old.iter().max_by(|a, b| a.by_age(b))),
        [only] => Some(*only),
        _ => None,
    };
    if let Some(only) = only {
        orders.scale(cluster, only, orders.desired);
        return true;
    }
    let is_full = |set: &ReplicaSet| {
        let numbers = [set.wanted(), set.told_desired().unwrap_or(-1), set.counted("availableReplicas")];
        numbers.iter().all(|number| *number == orders.desired)
    };
    if sets.current.as_ref().is_some_and(is_full) {
        for set in sets.old.iter().filter(|set| set.wanted() > 0) {
            orders.scale(cluster, set, 0);
        }
        return true;
    }
    if !rolls {
        return false;
    }
    let allowed = if orders.desired > 0 { orders.most } else { 0 };
    let add = allowed - sets.wanted();
    active.sort_by(|a, b| {
        let by_age = if add > 0 { b.by_age(a) } else { a.by_age(b) };
        b.wanted().cmp(&a.wanted()).then(by_age)
    });
    let shares: Vec<Share> = active
        .iter()
        .map(|set| Share { is: set.wanted(), most: set.told_most().unwrap_or(counted) })
        .collect();
    for (set, size) in active.iter().zip(sizes(&shares, orders, add)) {
        orders.scale(cluster, set, size);
    }
    true
}

/// What a replica set is of a deployment.
struct Share {
    /// How many pods it asks for.
    is: i64,
    /// How many the deployment could have when it was told that.
    most: i64,
}

/// Returns how many pods each shall have, so that all together have `add` more. The first one gets what rounding leaves.
fn sizes(shares: &[Share], orders: &Orders<'_>, add: i64) -> Vec<i64> {
    let mut left = add;
    let mut sizes: Vec<i64> = Vec::new();
    for share in shares {
        let fraction = if orders.desired == 0 { -share.is } else { fraction(share, orders.most) };
        let part = match add.cmp(&0) {
            Ordering::Greater => fraction.min(left),
            Ordering::Less => fraction.max(left),
            Ordering::Equal => 0,
        };
        left -= part;
        sizes.push(share.is + part);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    sizes
}

/// Returns how many pods a replica set has too few for its share of `most`, rounded.
fn fraction(share: &Share, most: i64) -> i64 {
    if share.most <= 0 {
        return 0;
    }
    let doubled = share.is.saturating_mul(most).saturating_mul(2).saturating_add(share.most);
    doubled / share.most.saturating_mul(2) - share.is
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn told(desired: i64, surge: i64, shares: &[(i64, i64)]) -> Vec<i64> {
        let orders = Orders { deployment: &Value::Null, revision: 1, desired, most: desired + surge };
        let shares: Vec<Share> = shares.iter().map(|&(is, most)| Share { is, most }).collect();
        let is: i64 = shares.iter().map(|share| share.is).sum();
        let allowed = if desired > 0 { orders.most } else { 0 };
        sizes(&shares, &orders, allowed - is)
    }

    #[test]
    fn replica_sets_are_scaled_as_the_deployment_controller_does() {
        // How many are asked for, how many there may be above that, and the replica sets, the largest first.
        for (desired, surge, before, expected) in [
            (8, 0, &[(3, 4), (1, 4)][..], &[6, 2][..]),
            (4, 1, &[(6, 10), (4, 10)], &[3, 2]),
            (10, 0, &[(3, 6), (2, 6), (1, 6)], &[5, 3, 2]),
            (12, 0, &[(5, 10), (3, 10), (2, 10)], &[6, 4, 2]),
            (6, 0, &[(5, 10), (3, 10), (2, 10)], &[3, 2, 1]),
            (5, 0, &[(3, 6), (2, 6), (1, 6)], &[2, 2, 1]),
            (0, 3, &[(4, 10), (3, 10), (3, 10)], &[0, 0, 0]),
            (10, 0, &[(5, 5), (2, 5)], &[8, 2]),
            (7, 0, &[(2, 2)], &[7]),
            (5, 2, &[(3, 0), (2, 0)], &[5, 2]),
        ] {
            assert_eq!(told(desired, surge, before), expected, "{desired}+{surge} {before:?}");
        }
    }
}
