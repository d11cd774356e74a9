//! Facts about the machine, without which a figure means nothing.
//!
//! Owns the looking, at the beginning of a run; [`peak_bytes`] and [`resident_bytes`] ask about this process at any time. Never judges.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde::Serialize;

use super::place::Place;
use super::report::rounded;
use super::statistics::{median, us};

/// What every measurement carries.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) version: &'static str,
    pub(crate) date: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Of the folder that the files are in.
    pub(crate) file_system: String,
    /// `false` where a file system keeps files in memory: an fsync there is none.
    pub(crate) fsync_is_real: bool,
    pub(crate) fsync_us: f64,
}

/// What one fsync covers here: a page of SQLite.
const PAGE_BYTES: usize = 4_096;
const FSYNCS: usize = 64;

impl Machine {
    pub(crate) fn look(place: &Place) -> anyhow::Result<Self> {
        let file_system = file_system_of(place.folder());
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            date: rfc3339(seconds_since_1970()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: kernel(),
            fsync_is_real: !matches!(file_system.as_str(), "tmpfs" | "ramfs" | "devtmpfs"),
            file_system,
            fsync_us: rounded(fsync_us(&place.scratch("fsync")).context("the disk cannot be measured")?),
        })
    }
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim_end().to_owned()
}

/// Writes a page over and over, as the `-wal` file is written, with an fsync each time.
fn fsync_us(path: &Path) -> std::io::Result<f64> {
    let mut file = File::create(path)?;
    let page = [7; PAGE_BYTES];
    let mut times = Vec::with_capacity(FSYNCS);
    for _ in 0..FSYNCS {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&page)?;
        let began = Instant::now();
        file.sync_all()?;
        times.push(us(began.elapsed()));
    }
    Ok(median(times))
}

/// The type of file system that holds `folder`; `unknown` where the system does not tell.
fn file_system_of(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    type_of_mount(&mounts, &folder).unwrap_or("unknown").to_owned()
}

/// The mount with the longest path that leads to `folder`; of equal ones the last, which covers the others.
fn type_of_mount<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let lines = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((Path::new(words.nth(1)?), words.next()?))
    });
    lines.filter(|(at, _)| folder.starts_with(at)).max_by_key(|(at, _)| at.as_os_str().len()).map(|(_, kind)| kind)
}

/// The most memory that this process has had. Zero where the system does not tell.
pub(crate) fn peak_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// The memory that this process has now.
pub(crate) fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn status_bytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Microseconds since 1970, to compare moments of two processes.
pub(crate) fn us_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn seconds_since_1970() -> u64 {
    us_since_1970() / 1_000_000
}

/// A date is all that we need of a calendar, so no library for it. After "days from civil" turned round: years begin in March, so
/// that the leap day is the last of its year.
fn rfc3339(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let day = days + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_nearest_mount_tells_the_file_system() {
        let mounts = "/dev/a / ext4 rw 0 0\nnone /tmp tmpfs rw 0 0\nnone /tmporary xfs rw 0 0\n";
        assert_eq!(type_of_mount(mounts, Path::new("/tmp/x")), Some("tmpfs"));
        assert_eq!(type_of_mount(mounts, Path::new("/home")), Some("ext4"));
    }
}
