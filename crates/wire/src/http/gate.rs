//! A layer that looks at a request before the next sees it.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{Request, Response},
};
use tower::{Layer, Service};

/// Makes a layer of a function that answers a request itself, or hands it on, perhaps as another kind
/// of request: bytes become a body in memory, and that becomes a message.
pub(crate) fn gate<F>(check: F) -> GateLayer<F> {
    GateLayer { check }
}

#[derive(Clone)]
pub(crate) struct GateLayer<F> {
    check: F,
}

#[derive(Clone)]
pub(crate) struct Gate<F, S> {
    check: F,
    next: S,
}

impl<F: Clone, S> Layer<S> for GateLayer<F> {
    type Service = Gate<F, S>;

    fn layer(&self, next: S) -> Self::Service {
        Gate { check: self.check.clone(), next }
    }
}

impl<A, B, F, C, S> Service<Request<A>> for Gate<F, S>
where
    A: Send + 'static,
    B: Send + 'static,
    F: Fn(Request<A>) -> C + Send + 'static,
    C: Future<Output = Result<Request<B>, Response<Body>>> + Send + 'static,
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.next.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        // The service that was found ready is the one that must be called.
        let spare = self.next.clone();
        let mut next = std::mem::replace(&mut self.next, spare);
        let checked = (self.check)(request);
        Box::pin(async move {
            match checked.await {
                Ok(request) => next.call(request).await,
                Err(response) => Ok(response),
            }
        })
    }
}
