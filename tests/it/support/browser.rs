//! A real browser without a window, spoken to through pipes in its debugging protocol.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::DEADLINE;

/// Where browsers are looked for, and what they are called.
const PLACES: &[&str] = &["/usr/bin", "/usr/local/bin", "/opt/google/chrome", "/snap/bin"];
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "chrome", "chrome-headless-shell"];

/// A browser with one empty page.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    session: String,
    /// What the browser told by itself.
    events: Vec<Value>,
    _dir: TempDir,
}

/// Returns the browser of this machine.
pub(crate) fn installed() -> Option<PathBuf> {
    let mut all = PLACES.iter().flat_map(|place| NAMES.iter().map(move |name| Path::new(place).join(name)));
    all.find(|path| path.exists())
}

impl Browser {
    /// Starts the browser of this machine; `None`, and a line that says so, when there is none.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = installed() else {
            eprintln!("skipped: there is no browser on this machine; .ci/run installs one");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let (to, from) = (dir.path().join("to"), dir.path().join("from"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let child = Command::new("bash")
            .args(["-c", "exec \"$@\" 3<\"$TO\" 4>\"$FROM\"", "bash"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu"])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-dev-shm-usage",
                "--mute-audio",
            ])
            .args(["--hide-scrollbars", "--window-size=1280,900"])
            .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
            .env("TO", &to)
            .env("FROM", &from)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let mut browser =
            Self { child, to, from, last: 0, session: String::new(), events: Vec::new(), _dir: dir };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &attach);
        session["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        write!(self.to, "{message}\0").unwrap();
        loop {
            let mut answer = self.read();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Waits until the browser tells `method`.
    pub(crate) fn wait(&mut self, method: &str) -> Value {
        loop {
            let event = self.read();
            let is_it = event["method"] == method;
            self.events.push(event.clone());
            if is_it {
                return event;
            }
        }
    }

    /// Opens an address and waits until it is shown. Returns the requests that it led to.
    pub(crate) fn open(&mut self, address: &str) -> Vec<String> {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": address}));
        if !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.wait("Page.loadEventFired");
        }
        let requests = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns what the browser complained about since the page was opened: errors and refused parts.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let methods = ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"];
        let complaints =
            self.events.iter().filter(|event| methods.iter().any(|known| event["method"] == *known));
        complaints.map(Value::to_string).collect()
    }

    /// Returns the value of an expression; a promise is waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression:.80}: {answer}");
        answer["result"]["value"].take()
    }

    /// From now on [`Browser::processor_time`] is known.
    pub(crate) fn count_processor_time(&mut self) {
        self.call("Performance.enable", &json!({"timeDomain": "threadTicks"}));
    }

    /// Returns for how many seconds the thread that lays pages out has computed.
    pub(crate) fn processor_time(&mut self) -> f64 {
        let metrics = self.call("Performance.getMetrics", &json!({}));
        let mut all = metrics["metrics"].as_array().unwrap().iter();
        let tasks = all.find(|metric| metric["name"] == "TaskDuration").unwrap();
        tasks["value"].as_f64().unwrap()
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "char", "keyUp"] {
            if kind == "char" && key != "Enter" {
                continue;
            }
            let text = if kind == "char" { "\r" } else { "" };
            let parameters = json!({"type": kind, "key": key, "code": key, "text": text,
                "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &parameters);
        }
    }

    /// Sets the width of the window and what the reader prefers: `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str, width: u32) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &features);
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Returns a picture of the page, as PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let picture = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        picture["data"].as_str().unwrap().to_owned()
    }

    /// Evaluates `condition` until it is true.
    pub(crate) fn until(&mut self, condition: &str) {
        let deadline = Instant::now() + DEADLINE;
        while self.evaluate(condition) != true {
            assert!(Instant::now() < deadline, "never true: {condition}");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
