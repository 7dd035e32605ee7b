//! Helm charts: load, render, order and record, without doing anything itself.
