//! A value that is reloaded from files periodically.

use std::{fmt::Display, sync::Arc, time::Duration};

use tokio::sync::watch;

/// A value that is reloaded from files. While the files are invalid, the last valid value stays in use.
pub(crate) struct Reloaded<T> {
    current: watch::Receiver<Option<Arc<T>>>,
}

/// How to load the value.
pub(crate) struct ReloadSource<T, E> {
    /// What the files contain, for log messages.
    pub(crate) name: &'static str,
    /// Loads the value. May block.
    pub(crate) load: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    /// Compares two loaded values; an equal one is discarded.
    pub(crate) is_same: fn(&T, &T) -> bool,
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// Holds a value that never changes.
    pub(crate) fn fixed(value: Option<T>) -> Self {
        let (_, current) = watch::channel(value.map(Arc::new));
        Self { current }
    }

    /// Starts with `first` and reloads `source` every `period`, as long as a clone exists. A failed reload
    /// keeps the last value.
    ///
    /// Files are polled because the kubelet swaps a symbolic link above them, which file watches miss.
    pub(crate) fn follow<E>(first: Option<T>, source: ReloadSource<T, E>, period: Duration) -> Self
    where
        E: Display + Send + 'static,
    {
        let (sender, current) = watch::channel(first.map(Arc::new));
        tokio::spawn(reload(sender, source, period));
        Self { current }
    }

    /// The last valid value; [`None`] if there was none yet.
    pub(crate) fn current(&self) -> Option<Arc<T>> {
        self.current.borrow().clone()
    }
}

impl<T> Clone for Reloaded<T> {
    fn clone(&self) -> Self {
        Self {
            current: self.current.clone(),
        }
    }
}

async fn reload<T, E>(sender: watch::Sender<Option<Arc<T>>>, source: ReloadSource<T, E>, period: Duration)
where
    T: Send + Sync + 'static,
    E: Display + Send + 'static,
{
    let ReloadSource { name, load, is_same } = source;
    let load = Arc::new(load);
    let mut complaint = String::new();
    loop {
        tokio::select! {
            () = sender.closed() => return,
            () = tokio::time::sleep(period) => {}
        }
        let load = load.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || load()).await else {
            continue;
        };
        match read {
            Ok(read) => {
                complaint.clear();
                let is_news = |known: &Arc<T>| !is_same(known, &read);
                if sender.borrow().as_ref().is_none_or(is_news) {
                    sender.send_replace(Some(Arc::new(read)));
                    tracing::info!("Using a new {name}");
                }
            }
            Err(error) if error.to_string() != complaint => {
                complaint = error.to_string();
                tracing::warn!(
                    error = complaint,
                    "Cannot reload the {name}; keeping the previous one"
                );
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    const PERIOD: Duration = Duration::from_millis(1);

    /// The content of fake files, and how often they were read.
    #[derive(Clone)]
    struct Files {
        content: Arc<Mutex<Result<u32, String>>>,
        reads: Arc<AtomicUsize>,
    }

    impl Files {
        fn holding(content: Result<u32, String>) -> Self {
            Self {
                content: Arc::new(Mutex::new(content)),
                reads: Arc::default(),
            }
        }

        fn source(&self) -> ReloadSource<u32, String> {
            let files = self.clone();
            ReloadSource {
                name: "number",
                load: Box::new(move || {
                    files.reads.fetch_add(1, Ordering::SeqCst);
                    files.content.lock().unwrap().clone()
                }),
                is_same: u32::eq,
            }
        }

        async fn hold(&self, content: Result<u32, String>) {
            *self.content.lock().unwrap() = content;
            // The first read may have started before the change.
            let enough = self.reads.load(Ordering::SeqCst) + 3;
            while self.reads.load(Ordering::SeqCst) < enough {
                tokio::time::sleep(PERIOD).await;
            }
        }
    }

    #[tokio::test]
    async fn an_invalid_reload_keeps_the_last_value() {
        let files = Files::holding(Err("no file".into()));
        let reloaded = Reloaded::follow(None, files.source(), PERIOD);
        for (content, expected) in [
            (Err("no file"), None),
            (Ok(1), Some(1)),
            (Err("garbage"), Some(1)),
            (Ok(1), Some(1)),
            (Ok(2), Some(2)),
        ] {
            files.hold(content.map_err(ToOwned::to_owned)).await;
            assert_eq!(reloaded.current().as_deref(), expected.as_ref());
        }
    }

    #[tokio::test]
    async fn an_unchanged_value_is_not_replaced() {
        let files = Files::holding(Ok(1));
        let reloaded = Reloaded::follow(Some(1), files.source(), PERIOD);
        let first = reloaded.current().unwrap();
        files.hold(Ok(1)).await;
        assert!(Arc::ptr_eq(&first, &reloaded.current().unwrap()));
    }

    #[tokio::test]
    async fn reloading_stops_after_the_last_clone_is_dropped() {
        let files = Files::holding(Ok(1));
        let reloaded = Reloaded::follow(None, files.source(), PERIOD);
        let other = reloaded.clone();
        drop(reloaded);
        files.hold(Ok(2)).await;
        drop(other);
        while Arc::strong_count(&files.reads) > 1 {
            tokio::time::sleep(PERIOD).await;
        }
    }
}
