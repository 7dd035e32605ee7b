//! Serves a cluster: `serve ADDR:PORT KUBECONFIG [--simulate] [--state FILE] [--audit FILE]`.
#![expect(clippy::print_stderr, reason = "an example says what is wrong on the terminal")]

use std::time::Duration;

use apiserver::{Options, run};

fn main() -> std::process::ExitCode {
    let Some(options) = options() else {
        eprintln!("usage: serve ADDR:PORT KUBECONFIG [--simulate] [--state FILE] [--audit FILE]");
        return std::process::ExitCode::from(2);
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("start the runtime: {error}");
            return std::process::ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(options)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn options() -> Option<Options> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next()?.parse().ok()?;
    let kubeconfig_out = arguments.next()?.into();
    let mut options = Options { listen, kubeconfig_out, simulate: None, state: None, audit: None };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--simulate" => options.simulate = Some(Duration::from_millis(500)),
            "--state" => options.state = Some(arguments.next()?.into()),
            "--audit" => options.audit = Some(arguments.next()?.into()),
            _ => return None,
        }
    }
    Some(options)
}
