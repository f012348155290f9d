//! Renders the pages in Chromium: four states, both color schemes, two widths. The screenshots are in
//! `screenshots` of cargo's temporary folder for tests.
//!
//! Without `chromium` (Debian: `chromium`) the test is skipped with a message.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod pages;

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{SinkExt, StreamExt};
use pages::{STATES, report};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

/// The narrowest phone, and a desktop.
const WIDTHS: [u32; 2] = [320, 1280];

/// Chromium with one page.
struct Browser {
    process: Child,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Returns `None` if Chromium is not installed.
    async fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-port=0",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let port = profile.path().join("DevToolsActivePort");
        let (address, path) = loop {
            if let Ok(text) = fs::read_to_string(&port)
                && let Some((port, path)) = text.trim().split_once('\n')
            {
                break (port.to_owned(), path.to_owned());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let (socket, _) = connect_async(format!("ws://127.0.0.1:{address}{path}"))
            .await
            .unwrap();
        let mut browser = Self {
            process,
            socket,
            session: String::new(),
            calls: 0,
            _profile: profile,
        };
        let target = browser
            .call("Target.createTarget", json!({"url": "about:blank"}))
            .await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach).await;
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": parameters});
        if !self.session.is_empty() {
            call["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(call.to_string())).await.unwrap();
        loop {
            let message = self.socket.next().await.unwrap().unwrap();
            let Ok(answer) = serde_json::from_slice::<Value>(&message.into_data()) else {
                continue;
            };
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    async fn value(&mut self, expression: &str) -> Value {
        let answer = self
            .call(
                "Runtime.evaluate",
                json!({"expression": expression, "returnByValue": true}),
            )
            .await;
        answer["result"]["value"].clone()
    }

    async fn show(&mut self, page: &Path, width: u32, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}))
            .await;
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", page.display())}),
        )
        .await;
        while self.value("document.readyState").await != "complete"
            || self.value("location.protocol").await != "file:"
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn press(&mut self, key: &str, code: u32, text: &str) {
        for what in ["keyDown", "keyUp"] {
            let event =
                json!({"type": what, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }
}

/// Returns the lowest contrast between text and background, as defined by WCAG 2.2 (success criterion 1.4.3).
const CONTRAST: &str = r#"(() => {
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const element of document.querySelectorAll('p, span, strong, a, td, th, dt, dd, li, caption, h1, h2, code, b')) {
    if (!element.innerText || element.closest('[aria-hidden]')) continue;
    const [a, b] = [luminance(channels(getComputedStyle(element).color)), luminance(ground(element))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
})()"#;

#[tokio::test]
async fn every_page_is_readable_at_every_width_and_color_scheme() {
    let Some(mut browser) = Browser::start().await else {
        eprintln!("SKIPPED: chromium not found; install Debian's package chromium");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    fs::create_dir_all(&folder).unwrap();
    for state in STATES {
        let page = folder.join(format!("{state}.html"));
        fs::write(&page, report(state).to_html().unwrap()).unwrap();
        for width in WIDTHS {
            for scheme in ["light", "dark"] {
                let name = format!("{state}-{scheme}-{width}");
                browser.show(&page, width, scheme).await;
                let wide = browser.value("document.documentElement.scrollWidth").await;
                assert!(
                    wide.as_u64().unwrap() <= u64::from(width),
                    "{name} is {wide} wide"
                );
                let contrast = browser.value(CONTRAST).await;
                assert!(
                    contrast.as_f64().unwrap() >= 4.5,
                    "{name} has a contrast of {contrast}"
                );
                let taken = browser
                    .call("Page.captureScreenshot", json!({"captureBeyondViewport": true}))
                    .await;
                let picture = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
                fs::write(folder.join(format!("{name}.png")), picture).unwrap();
            }
        }
    }
    println!("screenshots are in {}", folder.display());

    // All rows can be opened and closed with the keyboard.
    browser.show(&folder.join("failing.html"), 1280, "light").await;
    let rows = browser.value("document.querySelectorAll('summary').length").await;
    let mut opened = 0;
    for _ in 0..200 {
        browser.press("Tab", 9, "").await;
        if browser.value("document.activeElement.tagName").await == "SUMMARY" {
            browser.press("Enter", 13, "\r").await;
            let is_open = "document.activeElement.parentElement.open";
            let outline = "getComputedStyle(document.activeElement).outlineStyle";
            if browser.value(is_open).await == true {
                opened += 1;
                assert_eq!(browser.value(outline).await, "solid", "the focus is not visible");
            }
        }
        if json!(opened) == rows {
            return;
        }
    }
    panic!("{opened} of {rows} rows were opened with the keyboard");
}
