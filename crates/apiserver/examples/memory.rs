//! Creates 10,000 pods of 3 KiB in process and prints how much memory they take.
#![expect(clippy::print_stdout, reason = "an example tells its result on the terminal")]

use apiserver::ApiServer;
use axum::body::Body;
use http::Request;
use tower::ServiceExt;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let started = std::time::Instant::now();
    let server = ApiServer::builder().build()?;
    println!("start: {:?}", started.elapsed());
    let before = resident_kib();
    let started = std::time::Instant::now();
    let size = runtime.block_on(async {
        let mut size = 0;
        for n in 0..10_000 {
            let body = format!(
                r#"{{"metadata":{{"name":"pod-{n}","annotations":{{"a":"{}"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#,
                "x".repeat(1_700)
            );
            let request = Request::post("/api/v1/namespaces/default/pods")
                .header("content-type", "application/json")
                .body(Body::from(body))?;
            let answer = server.service().oneshot(request).await?;
            size += http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes().len();
        }
        Ok::<_, Box<dyn std::error::Error>>(size)
    })?;
    println!("10,000 pods of {} bytes: {:?}", size / 10_000, started.elapsed());
    println!("memory: {} MiB", (resident_kib() - before) / 1_024);
    Ok(())
}
