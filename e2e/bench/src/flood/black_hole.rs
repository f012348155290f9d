//! Addresses that never answer.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A port at which no address of this machine answers: nobody accepts what is connected there, and the kernel drops the packets
/// of whoever comes when its queue is full. An address without a route or a listener would refuse at once.
pub(super) struct BlackHole {
    port: u16,
    _listener: TcpListener,
    _first: Vec<TcpStream>,
}

/// How many connections the kernel may hold that nobody has accepted. It holds one more.
const BACKLOG: u32 = 1;

impl BlackHole {
    /// Opens one at every address of this machine.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let port = listener.local_addr()?.port();
        let mut first = Vec::new();
        for _ in 0..=BACKLOG {
            first.push(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?);
        }
        Ok(Self {
            port,
            _listener: listener,
            _first: first,
        })
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nobody_answers_in_a_black_hole() {
        let hole = BlackHole::open().await.unwrap();
        for address in [[127, 0, 0, 1], [127, 1, 2, 3]] {
            let connecting = TcpStream::connect(SocketAddr::from((address, hole.port())));
            let outcome = tokio::time::timeout(Duration::from_millis(300), connecting).await;
            assert!(outcome.is_err(), "{outcome:?}");
        }
    }
}
