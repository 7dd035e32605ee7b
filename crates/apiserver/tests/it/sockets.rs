//! The server behind a socket, with TLS and tokens.

use apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;

async fn config(kubeconfig: &str) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

/// Returns the token of a kubeconfig.
fn token(kubeconfig: &str) -> String {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap();
    line.trim_matches('"').to_owned()
}

#[tokio::test]
async fn slip_04_without_a_given_token_a_random_one_is_asked_for() {
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let server = ApiServer::builder().seed(1).build().unwrap();
        let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        let token = token(serving.kubeconfig());
        for guess in ["admin", "", &token[1..], &token.to_lowercase()] {
            let guessed = serving.kubeconfig().replace(&token, guess);
            let maps: Api<ConfigMap> =
                Api::default_namespaced(Client::try_from(config(&guessed).await).unwrap());
            let error = maps.list(&ListParams::default()).await.unwrap_err().to_string();
            assert!(error.contains("Unauthorized") || error.contains("orbidden"), "{guess}: {error}");
        }
        // 256 bits in base64.
        assert_eq!(token.len(), 43);
        tokens.insert(token);
        serving.shutdown().await;
    }
    assert_eq!(tokens.len(), 3);
}

#[tokio::test]
async fn the_kubeconfig_leads_to_the_server_and_other_tokens_do_not() {
    let server = ApiServer::builder().token("secret").build().unwrap();
    let serving = server.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let client = Client::try_from(config(serving.kubeconfig()).await).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("x".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let other = config(&serving.kubeconfig().replace("secret", "guess")).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(other).unwrap());
    let error = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(error.to_string().contains("Unauthorized"), "{error}");
    serving.shutdown().await;
}
