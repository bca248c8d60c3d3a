//! One HTTP/1.1 connection that is kept open: as little client as a load needs.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, stream: BufReader::new(stream), request: Vec::new() })
    }

    pub(crate) fn post(
        &mut self,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        )?;
        self.request.extend_from_slice(body);
        self.exchange()
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        self.request.clear();
        write!(self.request, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)?;
        self.exchange()
    }

    /// Sends the request and reads the whole answer.
    fn exchange(&mut self) -> io::Result<(u16, Vec<u8>)> {
        self.stream.get_mut().write_all(&self.request)?;
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| unexpected(&status_line))?;
        let mut length = 0;
        loop {
            let header = self.line()?;
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(|_| unexpected(&header))?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(unexpected(&line)),
        }
    }
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("unexpected answer: {what:?}"))
}
