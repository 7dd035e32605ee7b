//! Programs that we did not write, and that ours are compared with.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio::net::{TcpListener, UnixStream};

/// A program that is ended with the test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program. `install` says what has to be installed for it.
pub(crate) fn start(install: &str, program: &str, arguments: &[&str]) -> Running {
    let places = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PATH", places)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = command.spawn();
    Running(started.unwrap_or_else(|error| panic!("{program}: {error} (install {install})")))
}

/// Forwards connections to a socket, for programs that can't say which port they got. Returns the port.
pub(crate) async fn forward(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let socket = socket.clone();
            tokio::spawn(async move {
                if let Ok(mut to) = UnixStream::connect(&socket).await {
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                }
            });
        }
    });
    port
}
