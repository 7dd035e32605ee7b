//! Commands that speak to registries and repositories without an operator.

use std::io::Read as _;
use std::path::PathBuf;

use ::source::registry::reference::{RegistryUrl, is_registry};
use anyhow::Context as _;
use clap::{ArgMatches, Command, value_parser};

use super::arguments::{option, switch};
use super::output::{FAILED, OK, complain, say, say_all};
use crate::source::{self, Client, ClientOptions, Copied, Destination, Part};

/// The longest password that is read, in bytes.
const LONGEST_PASSWORD: u64 = 64 << 10;

/// Adds the options about servers, and who one is there.
pub(super) fn with_registry_options(command: Command) -> Command {
    let file = |name, help| option(name, "FILE", help).value_parser(value_parser!(PathBuf));
    command
        .arg(option("username", "USER", "User of the registry").requires("password-stdin"))
        .arg(
            switch("password-stdin", "Read the password of the user from standard input")
                .requires("username"),
        )
        .arg(file(
            "registry-config",
            "Configuration of Docker with users of registries, such as ~/.docker/config.json",
        ))
        .arg(file("ca", "Certificates of authorities that are trusted beside those of the system"))
        .arg(switch("plain-http", "Servers may be without TLS"))
}

/// Returns what reaches the servers.
fn client(leaf: &ArgMatches) -> anyhow::Result<Client> {
    let path = |name: &str| leaf.get_one::<PathBuf>(name).cloned();
    let login = leaf.get_one::<String>("username").map(|user| {
        let mut password = String::new();
        let mut input = std::io::stdin().lock().take(LONGEST_PASSWORD);
        input.read_to_string(&mut password).context("can't read the password from standard input")?;
        anyhow::Ok((user.clone(), password.trim_end_matches(['\n', '\r']).to_owned()))
    });
    let docker_config = path("registry-config").map(|path| {
        crate::regular_file::read(&path).with_context(|| format!("can't read {}", path.display()))
    });
    Ok(Client::new(ClientOptions {
        authorities: path("ca"),
        plain_http: leaf.get_flag("plain-http"),
        login: login.transpose()?,
        docker_config: docker_config.transpose()?,
    })?)
}

/// Reads where something goes to.
fn place(to: &str) -> anyhow::Result<RegistryUrl> {
    if !is_registry(to) {
        anyhow::bail!("{to:?} is no place in a registry: write oci://HOST/PATH");
    }
    RegistryUrl::parse(to).with_context(|| format!("{to:?} is no place in a registry"))
}

/// Pushes bundles, each whatever became of those before.
pub(super) fn push(leaf: &ArgMatches, paths: &[PathBuf]) -> u8 {
    let to = leaf.get_one::<String>("to").map(String::as_str).unwrap_or_default();
    let pushing = || -> anyhow::Result<u8> {
        let to = place(to)?;
        with_client(leaf, async |client| {
            let mut code = OK;
            for path in paths {
                code = code.max(match source::push(client, path, &to).await {
                    Ok(pushed) => say(&format!("{} {} {}", pushed.place, pushed.digest, pushed.manifest)),
                    Err(problems) => say_all(&problems),
                });
            }
            code
        })
    };
    pushing().unwrap_or_else(|error| complain(&error).max(FAILED))
}

/// Copies a source.
pub(super) fn mirror(leaf: &ArgMatches) -> u8 {
    let text = |name: &str| leaf.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let part = |text: &String| {
        let (name, version) =
            text.split_once('@').map_or((text.as_str(), None), |(name, version)| (name, Some(version)));
        Part { name: name.to_owned(), version: version.map(str::to_owned) }
    };
    let parts: Vec<Part> = leaf.get_many("include").into_iter().flatten().map(part).collect();
    let copying = || -> anyhow::Result<u8> {
        let to = text("to");
        let to = if is_registry(to) {
            Destination::Registry(place(to)?)
        } else {
            Destination::Directory(to.into())
        };
        with_client(leaf, async |client| match source::mirror(client, text("from"), &parts, &to).await {
            Ok(copied) => copied.iter().fold(OK, |_, Copied { place, digest, is_signed }| {
                say(&format!("{place} {digest}{}", if *is_signed { ", with its signature" } else { "" }))
            }),
            Err(problems) => say_all(&problems),
        })
    };
    copying().unwrap_or_else(|error| complain(&error).max(FAILED))
}

/// Does what needs servers.
fn with_client(leaf: &ArgMatches, work: impl AsyncFnOnce(&Client) -> u8) -> anyhow::Result<u8> {
    let client = client(leaf)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(work(&client)))
}
