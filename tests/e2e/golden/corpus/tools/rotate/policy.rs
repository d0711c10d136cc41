//! How long a rotated file stays.

use std::time::Duration;

const DAY: u64 = 24 * 60 * 60;

/// What is kept: by age, and by kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub ordinary: Duration,
    pub audit: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            ordinary: Duration::from_secs(14 * DAY),
            audit: Duration::from_secs(400 * DAY),
        }
    }
}

impl Policy {
    /// Whether a file of this name and age may be deleted.
    pub fn is_expired(&self, name: &str, age: Duration) -> bool {
        let limit = if name.starts_with("audit") { self.audit } else { self.ordinary };
        age > limit
    }
}
