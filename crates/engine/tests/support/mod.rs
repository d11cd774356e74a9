//! An engine with the small actors, on a real SQLite file or on a store that fails when told to.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steadfast::core::ids::{ActorId, RequestId};
use steadfast::store::batch::Batch;
use steadfast::store::memory::MemoryStore;
use steadfast::store::{Reader, Store, StoreError};
use steadfast::{Builder, Engine, Settings};
use steadfast_sim::actors::{chain, counter, courier, errand, fragile, ticker};

pub(crate) use steadfast_sim::actors::actor;

pub(crate) fn with_all_kinds(builder: Builder) -> Builder {
    steadfast_sim::hide_intended_panics();
    builder
        .kind(counter::KIND, counter::Counter)
        .kind(chain::KIND, chain::Chain)
        .kind(ticker::KIND, ticker::Ticker)
        .kind(errand::KIND, errand::Errand)
        .kind(courier::KIND, courier::Courier)
        .kind(fragile::KIND, fragile::Fragile)
}

/// A folder with a store in it that can be opened again and again.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("steadfast.db")
    }

    pub(crate) fn builder(&self) -> Builder {
        with_all_kinds(Engine::open(self.path()).unwrap())
    }

    pub(crate) fn start(&self) -> Engine {
        self.builder().start().unwrap()
    }
}

pub(crate) fn small_settings() -> Settings {
    Settings {
        runners: 3,
        resident_bytes_max: 4_096,
        mailbox_bytes_max: 6_144,
        batch_turns_max: 64,
        ..Settings::default()
    }
}

pub(crate) fn given(id: &str) -> RequestId {
    RequestId::given(id).unwrap()
}

pub(crate) async fn add(engine: &Engine, counter: &ActorId, add: u64) -> u64 {
    engine.request(counter, &counter::Add { add }).await.unwrap().decode().unwrap()
}

pub(crate) async fn stop(engine: Engine) {
    engine.stop(Duration::from_secs(5)).await;
}

/// Asks again and again until the answer is the one that is expected; a minute is for a machine that does nothing else.
pub(crate) async fn eventually<T, F: Future<Output = T>>(
    mut ask: impl FnMut() -> F,
    is_expected: impl Fn(&T) -> bool,
) -> T {
    let begin = Instant::now();
    loop {
        let answer = ask().await;
        if is_expected(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the expected answer never came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A store that fails to write while it is told to.
#[derive(Clone, Default)]
pub(crate) struct FailingStore {
    rows: MemoryStore,
    is_full: Arc<AtomicBool>,
}

impl FailingStore {
    pub(crate) fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::SeqCst) { Err(StoreError::Full("the test says so".to_owned())) } else { Ok(()) }
    }
}

impl Store for FailingStore {
    fn begin_boot(&self) -> Result<u32, StoreError> {
        self.rows.begin_boot()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.check()?;
        self.rows.commit(batch)
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.check()
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.reader()
    }
}
