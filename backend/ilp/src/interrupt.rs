//! Stops a running solve when the deadline is over.
//!
//! HiGHS asks from inside its loops whether to go on; the binding has no safe way to answer.
#![allow(unsafe_code)]

use highs::Model;
use highs_sys::{
    Highs_setCallback, Highs_startCallback, HighsCallbackDataIn, HighsCallbackDataOut,
    kHighsCallbackIpmInterrupt, kHighsCallbackMipInterrupt, kHighsCallbackSimplexInterrupt,
};
use solver::assignment::Deadline;
use std::os::raw::{c_char, c_int, c_void};

/// Has a solve of this model end soon after the deadline. The deadline must live as long as the
/// model is being solved, which borrowing it for as long as the model sees to.
pub(crate) fn when_over(model: &mut Model, deadline: &Deadline) {
    let data = std::ptr::from_ref(deadline).cast_mut().cast::<c_void>();
    // SAFETY: the pointer is a live HiGHS instance; `asked` reads `data` as the `Deadline` that it
    // is, through a shared reference, and callers keep it alive until the solve has returned.
    unsafe {
        Highs_setCallback(model.as_mut_ptr(), Some(asked), data);
        for kind in
            [kHighsCallbackSimplexInterrupt, kHighsCallbackIpmInterrupt, kHighsCallbackMipInterrupt]
        {
            Highs_startCallback(model.as_mut_ptr(), kind);
        }
    }
}

unsafe extern "C" fn asked(
    _kind: c_int,
    _message: *const c_char,
    _out: *const HighsCallbackDataOut,
    answer: *mut HighsCallbackDataIn,
    data: *mut c_void,
) {
    // SAFETY: HiGHS hands back what `when_over` gave it, and an answer to fill in or null.
    unsafe {
        let deadline = &*data.cast::<Deadline>().cast_const();
        if deadline.is_over() && !answer.is_null() {
            (*answer).user_interrupt = 1;
        }
    }
}
