//! Mixed-integer programmes over counts of equal VMs, answered by HiGHS.
