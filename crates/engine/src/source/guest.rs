//! What a configuration of one namespace may bring: charts alone, whose modules bear the name of the namespace.
//!
//! Hooks, the enabled script and CRDs would act with the rights of the operator, so that who may write such an object would
//! have those rights, too.

use chart::MAX_RELEASE_NAME;
use values::name::{ModuleName as Kebab, ModuleNameError};

use crate::addon::{AddonProblem, AddonReason, Bundle, Fetched, FetchedAddon, SourceKey};

/// Returns what was fetched as it counts in the namespace of a configuration: bundles with the names that their modules have
/// there, and a problem for each that can't be used there.
pub(super) fn in_namespace(key: &SourceKey, mut fetched: Fetched) -> Fetched {
    for addon in
        fetched.repositories.iter_mut().flat_map(|repository| repository.outcome.iter_mut().flatten())
    {
        let FetchedAddon { privileged, outcome, .. } = addon;
        match outcome {
            Ok(bundle) => {
                let message = match (name_in(&key.namespace, bundle), check_parts(privileged)) {
                    (Ok(named), Ok(())) => {
                        *bundle = named;
                        continue;
                    }
                    (Err(name), Err(parts)) => format!("{parts}; {name}"),
                    (Err(problem), Ok(())) | (Ok(_), Err(problem)) => problem,
                };
                *outcome = Err(AddonProblem { reason: AddonReason::LoadingError, message });
            }
            // What else is wrong with the bundle was found before.
            Err(problem) => {
                if let Err(more) = check_parts(privileged) {
                    problem.message = format!("{}; {more}", problem.message);
                }
            }
        }
    }
    fetched
}

fn check_parts(privileged: &[String]) -> Result<(), String> {
    if privileged.is_empty() {
        return Ok(());
    }
    Err(format!(
        "an AddonsConfiguration brings charts only, and the bundle has {}, which would act with the rights of the operator: \
         remove it, or have it registered by a ClusterAddonsConfiguration",
        privileged.join(", ")
    ))
}

/// Returns the bundle with the name that its module has in a namespace, or all that is wrong with that name.
fn name_in(namespace: &str, bundle: &Bundle) -> Result<Bundle, String> {
    let name = format!("{namespace}-{}", bundle.name);
    let mut problems = Vec::new();
    if name.len() > MAX_RELEASE_NAME {
        problems.push(format!(
            "its module would be named {name}, and the name of a release has at most {MAX_RELEASE_NAME} letters: give the addon a shorter name"
        ));
    }
    match Kebab::new(&name) {
        Ok(kebab) => {
            if let Some(other) = kebab.flagged_key() {
                problems.push(format!(
                    "its module would be named {name}, whose key {} in the ConfigMap says something about a module with the key \
                     {other}: give the addon another name",
                    kebab.key()
                ));
            }
        }
        Err(ModuleNameError::NotKebab { restored, .. } | ModuleNameError::NotCamel { restored, .. }) => {
            problems.push(format!(
                "its module would be named {name}, whose key in the ConfigMap would be that of {restored}: \
                 use another namespace, or give the addon another name"
            ));
        }
        Err(error) => problems.push(error.to_string()),
    }
    if problems.is_empty() {
        Ok(Bundle { name: name.as_str().into(), ..bundle.clone() })
    } else {
        Err(problems.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addon::{BundleKind, FetchedRepository, SourceKind};

    #[test]
    fn a_name_that_does_not_survive_is_refused_with_what_it_would_become() {
        let named = |namespace: &str, name: &str| {
            let bundle = Bundle {
                id: "i".to_owned(),
                name: name.into(),
                version: "1.0.0".to_owned(),
                digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
                order: 100,
                kind: BundleKind::Module,
                namespace: None,
            };
            name_in(namespace, &bundle).map(|bundle| bundle.name.to_string())
        };
        assert_eq!(named("team", "web-app").unwrap(), "team-web-app");
        let error = named("team-2", "web").unwrap_err();
        assert!(error.contains("team-2-web") && error.contains("team2-web"), "{error}");
        assert!(named(&"t".repeat(52), "a").unwrap_err().contains("at most 53 letters"));
        assert!(named(&"t".repeat(51), "a").is_ok());
        let error = named("team", "enabled").unwrap_err();
        assert!(
            error.contains("team-enabled, whose key teamEnabled") && error.contains("the key team:"),
            "{error}"
        );
        assert!(named("team", "web-maintenance").unwrap_err().contains("the key teamWeb:"));
        let both = named(&format!("{}-2", "t".repeat(52)), "a").unwrap_err();
        assert!(both.contains("at most 53 letters") && both.contains("use another namespace"), "{both}");
    }

    #[test]
    fn all_that_is_wrong_with_a_bundle_is_told_together() {
        let addon = |outcome: Result<Bundle, AddonProblem>, privileged: &[&str]| FetchedAddon {
            name: "web".to_owned(),
            version: "1.0.0".to_owned(),
            is_chosen: true,
            privileged: privileged.iter().map(|part| (*part).to_owned()).collect(),
            outcome,
        };
        let bundle = Bundle {
            id: "i".to_owned(),
            name: "web".into(),
            version: "1.0.0".to_owned(),
            digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
            order: 100,
            kind: BundleKind::Module,
            namespace: None,
        };
        let refused = AddonProblem { reason: AddonReason::LoadingError, message: "enabled: no".to_owned() };
        let told = |namespace: &str, addon: FetchedAddon| {
            let key =
                SourceKey { kind: SourceKind::Namespaced, namespace: namespace.into(), name: "a".into() };
            let repositories = vec![FetchedRepository { outcome: Ok(vec![addon]) }];
            let mut fetched = in_namespace(&key, Fetched { repositories });
            let addon = fetched.repositories.remove(0).outcome.unwrap().remove(0);
            addon.outcome.map(|bundle| bundle.name.to_string()).map_err(|problem| problem.message)
        };
        assert_eq!(told("team", addon(Ok(bundle.clone()), &[])), Ok("team-web".to_owned()));
        let text = told("team-2", addon(Ok(bundle), &["enabled", "hooks/"])).unwrap_err();
        assert!(text.contains("enabled, hooks/") && text.contains("team2-web"), "{text}");
        let text = told("team", addon(Err(refused.clone()), &["enabled"])).unwrap_err();
        assert!(text.starts_with("enabled: no; an AddonsConfiguration brings charts only"), "{text}");
        assert_eq!(told("team", addon(Err(refused), &[])), Err("enabled: no".to_owned()));
    }
}
