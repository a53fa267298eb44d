//! Where the grammars' memory comes from.
//!
//! A tree of syntax is made of millions of small blocks, several trees at once. The system's allocator keeps what each
//! thread has freed for that thread; for texts that are no programs, of which a tree is largest, that doubles what a
//! build takes.

#![allow(unsafe_code)]

use std::{ffi::c_void, ptr, sync::Once};

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_zalloc};

/// Lets the parsers take their memory from mimalloc. To be called before the first of them is made.
pub fn from_mimalloc() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the four belong together, and no parser has taken anything yet.
        unsafe { tree_sitter::set_allocator(Some(mi_malloc), Some(zeroed), Some(mi_realloc), Some(mi_free)) };
    });
}

unsafe extern "C" fn zeroed(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any size can be asked for.
    count.checked_mul(size).map_or(ptr::null_mut(), |bytes| unsafe { mi_zalloc(bytes) })
}
