//! Both stores do what every store must, and give the same answers to the same batches.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod same_answers;

use steadfast_store::Store;
use steadfast_store::conformance::{Place, check};
use steadfast_store::memory::MemoryStore;
use steadfast_store::sqlite::SqliteStore;
use tempfile::TempDir;

struct Folder(TempDir);

impl Place for Folder {
    fn open(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(self.0.path().join("store.db")).unwrap())
    }
}

struct Shared(MemoryStore);

impl Place for Shared {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }
}

#[test]
fn sqlite_conforms() {
    check(|| Folder(tempfile::tempdir().unwrap()));
}

#[test]
fn memory_conforms() {
    check(|| Shared(MemoryStore::new()));
}
