//! ptxrace
