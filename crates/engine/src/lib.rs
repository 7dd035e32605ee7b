//! Every decision the operator takes, without doing anything itself.
