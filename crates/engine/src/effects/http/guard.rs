//! Where a request may go.
//!
//! Owns the addresses that are refused: those of the local link, and the few others where clouds answer anybody on the machine with its keys. They are
//! refused as numbers in a URL, as what a name turns out to mean, and after a redirect. Loopback and private networks are allowed: people run their own
//! services there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use steadfast_core::limits::HTTP_REDIRECTS_MAX;

use super::super::Carries;

/// Whether HTTP requests may go to addresses of the local link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkLocal {
    /// No: the keys of a cloud's machine are there.
    #[default]
    Refused,
    /// Yes.
    Allowed,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Guard {
    pub(super) link_local: LinkLocal,
}

/// Why a request does not go out, or not on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Address(IpAddr),
    OtherPlace,
    TooManyRedirects,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => {
                write!(f, "`{address}` is an address of the local link, or another where a machine's keys are kept")
            }
            Self::OtherPlace => f.write_str("it was redirected to another place, and carries secrets"),
            Self::TooManyRedirects => write!(f, "it was redirected more than {HTTP_REDIRECTS_MAX} times"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Guard {
    /// Checks an address that is written as a number; such a one is never looked up.
    pub(super) fn check_literal(self, url: &Url) -> Result<(), Refusal> {
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        host.parse().map_or(Ok(()), |address| self.check(address))
    }

    fn check(self, address: IpAddr) -> Result<(), Refusal> {
        match self.link_local {
            LinkLocal::Refused if is_link_local(address) => Err(Refusal::Address(address)),
            LinkLocal::Refused | LinkLocal::Allowed => Ok(()),
        }
    }

    /// Which redirects are followed.
    pub(super) fn redirects(self, carries: Carries) -> Policy {
        Policy::custom(move |attempt| match self.check_redirect(&attempt, carries) {
            Ok(()) => attempt.follow(),
            Err(refusal) => attempt.error(refusal),
        })
    }

    fn check_redirect(self, attempt: &Attempt<'_>, carries: Carries) -> Result<(), Refusal> {
        if attempt.previous().len() > HTTP_REDIRECTS_MAX {
            return Err(Refusal::TooManyRedirects);
        }
        let is_same_place = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        match carries {
            Carries::Secrets if !is_same_place => Err(Refusal::OtherPlace),
            Carries::Secrets | Carries::Nothing => self.check_literal(attempt.url()),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One bad address among good ones is refused too: which of them is taken is not ours to say.
            for address in &found {
                guard.check(address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_link_local_v4(address),
        IpAddr::V6(address) => {
            let is_aws = address.segments()[..2] == AWS_NETWORK;
            let is_metadata = is_aws || address == GOOGLE_METADATA;
            address.is_unicast_link_local() || is_metadata || inside(address).into_iter().any(is_link_local_v4)
        }
    }
}

fn is_link_local_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || METADATA_V4.contains(&address)
}

/// Clouds whose keys are not on the local link: Alibaba, Azure, Oracle (classic).
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
/// `fd00:ec2::/32`, where a machine's keys, its time and its names are.
const AWS_NETWORK: [u16; 2] = [0xfd00, 0xec2];
const GOOGLE_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);

/// The older address inside a newer one: mapped, compatible, translated (NAT64) or tunnelled (6to4). A network's own translation
/// (`64:ff9b:1::/48`) may put it in several places, and which one is not known here: all of them count.
fn inside(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bytes = address.octets();
    let at = |[a, b, c, d]: [usize; 4]| Ipv4Addr::new(bytes[a], bytes[b], bytes[c], bytes[d]);
    let last = [12, 13, 14, 15];
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            vec![at(last)]
        }
        // RFC 6052 leaves byte 8 out.
        [0x64, 0xff9b, 1, ..] => [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], last].map(at).into(),
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str) -> bool {
        Guard { link_local: LinkLocal::Refused }.check_literal(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn addresses_of_the_local_link_are_refused_however_they_are_written() {
        for url in [
            "http://169.254.169.254/latest/meta-data",
            "http://2852039166/",
            "http://0xA9FEA9FE/",
            "http://169.254.0.1:8080/",
            "http://[fe80::1]/",
            "http://[febf::1]/",
            "http://[fd00:ec2::254]/",
            "http://[::ffff:169.254.169.254]/",
            "http://[::169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://100.100.100.200/",
            "http://168.63.129.16/machine",
            "http://192.0.0.192/latest",
            "http://[::ffff:168.63.129.16]/",
            "http://[fd00:ec2::23]/",
            "http://[fd00:ec2:0:1::1]/",
            "http://[fd20:ce::254]/",
            "http://[64:ff9b:1:a9fe:a9:fe00::]/",
            "http://[64:ff9b:1:a9:fe:a9fe::]/",
            "http://[64:ff9b:1:0:a9:fea9:fe00:0]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[64:ff9b:1:fffe::169.254.169.254]/",
        ] {
            assert!(!check(url), "{url}");
        }
    }

    #[test]
    fn loopback_private_networks_and_the_world_are_allowed() {
        for url in [
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://10.0.0.1/",
            "http://192.168.1.1/",
            "http://[fd00::1]/",
            "http://[fd20:ce::1]/",
            "http://[64:ff9b:1::10.0.0.1]/",
            "http://192.0.0.1/",
            "https://example.org/",
            "http://1.1.1.1/",
        ] {
            assert!(check(url), "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_means_such_an_address_is_refused() {
        // A system's resolver gives an address that is written as a number back as it is.
        let name = "169.254.169.254".parse::<Name>().unwrap();
        let refused = Guard { link_local: LinkLocal::Refused }.resolve(name).await.map(drop).unwrap_err();
        assert!(refused.downcast_ref::<Refusal>().is_some(), "{refused}");
        let name = "169.254.169.254".parse::<Name>().unwrap();
        assert!(Guard { link_local: LinkLocal::Allowed }.resolve(name).await.is_ok());
    }
}
