//! One HTTP/1.1 connection that is kept open: as little client as a load needs.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, stream })
    }

    pub(crate) fn post(
        &mut self,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> io::Result<Answer> {
        self.exchange(&post(self.address, path, content_type, body))
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.exchange(&get(self.address, path))
    }

    /// Sends the request and waits for the whole answer.
    fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request)?;
        let (mut received, mut piece) = (Vec::new(), [0; 16 * 1024]);
        loop {
            if let Some(answer) = read_answer(&received)? {
                return Ok(answer);
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                length => received.extend_from_slice(&piece[..length]),
            }
        }
    }
}

/// A GET as it goes over the wire.
pub(crate) fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
}

/// A POST as it goes over the wire.
pub(crate) fn post(address: SocketAddr, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// The answer at the start of what was received, once it is complete.
pub(crate) fn read_answer(received: &[u8]) -> io::Result<Option<Answer>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = received.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let unexpected =
        |what: &str| io::Error::new(ErrorKind::InvalidData, format!("unexpected answer: {what:?}"));
    let head = str::from_utf8(&received[..end]).map_err(|_| unexpected("not text"))?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| unexpected(head))?;
    let headers = lines.filter_map(|line| line.split_once(':'));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = match lengths.next() {
        Some((_, value)) => value.trim().parse().map_err(|_| unexpected(head))?,
        None => 0,
    };
    let body = received.get(end + END.len()..).and_then(|rest| rest.get(..length));
    Ok(body.map(|body| Answer { status, body: body.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_all_of_it_is_there() {
        let whole = b"HTTP/1.1 201 Created\r\ncontent-Length: 2\r\nx: y\r\n\r\n{}HTTP";
        let end = whole.len() - 4;
        for length in 0..end {
            assert_eq!(read_answer(&whole[..length]).expect("nothing wrong yet"), None);
        }
        let answer = Answer { status: 201, body: b"{}".to_vec() };
        assert_eq!(read_answer(&whole[..end]).expect("complete"), Some(answer));
        assert!(read_answer(b"NONSENSE\r\n\r\n").is_err());
    }
}
