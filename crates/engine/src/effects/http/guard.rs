//! Where a request may go.
//!
//! Owns the addresses that are refused: those of the local link, where clouds answer anybody on the machine with its keys. They are
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
                write!(f, "`{address}` is an address of the local link, where a machine's keys are kept")
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
            address.is_unicast_link_local() || address == AWS_METADATA || inside(address).is_some_and(is_link_local_v4)
        }
    }
}

fn is_link_local_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || address == ALIBABA_METADATA
}

/// Clouds whose keys are not on the local link.
const AWS_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
const ALIBABA_METADATA: Ipv4Addr = Ipv4Addr::new(100, 100, 100, 200);

/// The older address inside a newer one: mapped, compatible, translated (NAT64) or tunnelled (6to4).
fn inside(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let (high, low) = match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => (g, h),
        (0x2002, high, low, ..) => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
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
