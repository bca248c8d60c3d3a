//! One connection that stays open, and blocks.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No answer within this is a broken service, not a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// `line` is a method and a path. An error says that nobody knows what became of it.
    pub(crate) fn ask(&mut self, line: &str, key: Option<&str>, body: &str) -> io::Result<Answer> {
        let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: test\r\n{key}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    pub(crate) fn get(&mut self, path: &str) -> Value {
        let answer = self.ask(&format!("GET {path}"), None, "").expect("an answer");
        assert_eq!(answer.status, 200, "GET {path}: {answer:?}");
        answer.json()
    }

    /// Every item of a list, page by page.
    pub(crate) fn list(&mut self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut page = self.get(&format!("{path}?limit=1000"));
        loop {
            items.extend(page["items"].as_array().expect("items").iter().cloned());
            let Some(cursor) = page["next_cursor"].as_str() else { return items };
            page = self.get(&format!("{path}?limit=1000&cursor={}", cursor.replace('/', "%2F")));
        }
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
        });
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8(body).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Answer { status, head, body })
    }
}
