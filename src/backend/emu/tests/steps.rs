//! Steps of instrumented texts.
