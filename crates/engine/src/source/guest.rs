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
        if let Ok(bundle) = outcome {
            let named = check_parts(privileged).and_then(|()| name_in(&key.namespace, bundle));
            *outcome = named.map_err(|message| AddonProblem { reason: AddonReason::LoadingError, message });
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

fn name_in(namespace: &str, bundle: &Bundle) -> Result<Bundle, String> {
    let name = format!("{namespace}-{}", bundle.name);
    if name.len() > MAX_RELEASE_NAME {
        return Err(format!(
            "its module would be named {name}, and the name of a release has at most {MAX_RELEASE_NAME} letters: give the addon a shorter name"
        ));
    }
    match Kebab::new(&name) {
        Ok(kebab) => Ok(Bundle { name: kebab.as_str().into(), ..bundle.clone() }),
        Err(ModuleNameError::NotKebab { restored, .. } | ModuleNameError::NotCamel { restored, .. }) => {
            Err(format!(
                "its module would be named {name}, whose key in the ConfigMap would be that of {restored}: \
                 use another namespace, or give the addon another name"
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addon::BundleKind;

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
    }
}
