//! Where the service may listen: on loopback, unless the operator insists.

use std::net::SocketAddr;

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenError {
    pub address: SocketAddr,
}

impl std::error::Error for ListenError {}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address } = self;
        write!(
            f,
            "{address} can be reached from other machines and callers are not authenticated; \
             listen on 127.0.0.1:{}, or pass --insecure-public to accept everybody",
            address.port()
        )
    }
}

/// Refuses an address that others can reach, unless `insecure_public` says that this is meant.
pub fn check_listen(address: SocketAddr, insecure_public: bool) -> Result<(), ListenError> {
    // An IPv4 loopback address in IPv6 clothes is as private as without.
    if address.ip().to_canonical().is_loopback() || insecure_public {
        return Ok(());
    }
    Err(ListenError { address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open_without_insisting() {
        let check = |address: &str, expected: bool| {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(check_listen(address, false).is_ok(), expected, "{address}");
            assert!(check_listen(address, true).is_ok());
        };
        check("127.0.0.1:8080", true);
        check("127.8.8.8:0", true);
        check("[::1]:8080", true);
        check("[::ffff:127.0.0.1]:8080", true);
        check("0.0.0.0:8080", false);
        check("[::]:8080", false);
        check("192.168.1.7:8080", false);
        check("[::ffff:10.0.0.1]:8080", false);
    }

    #[test]
    fn the_refusal_says_what_to_do() {
        let address = "0.0.0.0:8080".parse().expect("an address");
        let refusal = check_listen(address, false).expect_err("public").to_string();
        assert!(refusal.contains("127.0.0.1:8080") && refusal.contains("--insecure-public"));
    }
}
