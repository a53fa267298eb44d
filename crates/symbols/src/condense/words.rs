//! Words of C that mean something to the shortcut.

/// Whether a word, with what is in parentheses after it, only adds to a declaration: attributes, by their names and
/// by those that the Linux kernel gives them. The grammar does not expect them where they are used.
#[rustfmt::skip]
pub(super) fn is_attribute(word: &[u8]) -> bool {
    if word[0] != b'_' {
        return matches!(
            word,
            b"asm" | b"asmlinkage" | b"noinline" | b"noinline_for_stack" | b"notrace" | b"noinstr" | b"fastcall"
                | b"randomized_struct_fields_start" | b"randomized_struct_fields_end" | b"alignas"
        );
    }
    matches!(
        word,
        b"__attribute__" | b"__attribute" | b"__declspec" | b"__asm__" | b"__asm" | b"__extension__" | b"_Alignas"
            | b"__packed" | b"__aligned" | b"__section" | b"__used" | b"__unused" | b"__maybe_unused"
            | b"__always_unused" | b"__weak" | b"__alias" | b"__visible" | b"__hot" | b"__cold" | b"__pure"
            | b"__noreturn" | b"__must_check" | b"__malloc" | b"__printf" | b"__scanf" | b"__deprecated"
            | b"__always_inline" | b"__noinline" | b"__no_inline" | b"__noclone" | b"__flatten" | b"__naked"
            | b"__init" | b"__exit" | b"__initdata" | b"__initconst" | b"__exitdata" | b"__exitconst"
            | b"__init_or_module" | b"__initdata_or_module" | b"__init_refok" | b"__ref" | b"__refdata"
            | b"__refconst" | b"__meminit" | b"__meminitdata" | b"__memexit" | b"__cpuinit" | b"__cpuinitdata"
            | b"__devinit" | b"__devexit" | b"__devinitdata" | b"__net_init" | b"__net_exit" | b"__net_initdata"
            | b"__head" | b"__sched" | b"__kprobes" | b"__cpuidle" | b"__lockfunc" | b"__irq_entry"
            | b"__read_mostly" | b"__ro_after_init" | b"__cacheline_aligned" | b"__cacheline_aligned_in_smp"
            | b"____cacheline_aligned" | b"____cacheline_aligned_in_smp" | b"____cacheline_internodealigned_in_smp"
            | b"__page_aligned_data" | b"__page_aligned_bss" | b"__latent_entropy" | b"__randomize_layout"
            | b"__no_randomize_layout" | b"__designated_init" | b"__mode" | b"__percpu" | b"__user" | b"__iomem"
            | b"__kernel" | b"__rcu" | b"__force" | b"__bitwise" | b"__nocast" | b"__private" | b"__safe"
            | b"__acquires" | b"__releases" | b"__must_hold" | b"__cond_lock" | b"__context__"
            | b"__no_sanitize_address" | b"__no_kcsan" | b"__no_kasan_or_inline" | b"__no_sanitize_or_inline"
            | b"__no_profile" | b"__nocfi" | b"__noscs" | b"__function_aligned" | b"__assume_aligned"
            | b"__no_stack_protector" | b"__no_caller_saved_registers" | b"__optimize" | b"__syscall_slow"
            | b"__counted_by" | b"__nonstring" | b"__noendbr" | b"__nostackprotector" | b"__efi_rt_code"
            | b"__init_memblock" | b"__initdata_memblock" | b"__paginginit" | b"__compiletime_error"
            | b"__compiletime_warning" | b"__stdcall" | b"__cdecl" | b"__fastcall" | b"__signed"
    )
}

/// Whether a word begins a type that can have a body.
pub(super) fn is_aggregate(word: &[u8]) -> bool {
    matches!(word, b"struct" | b"union" | b"enum")
}

/// Whether a word stands before a type, and says how something is stored.
pub(super) fn is_storage(word: &[u8]) -> bool {
    matches!(
        word,
        b"static"
            | b"extern"
            | b"const"
            | b"volatile"
            | b"inline"
            | b"__inline"
            | b"__inline__"
            | b"register"
            | b"typedef"
    )
}

/// Whether a word looks like the name of a macro that stands for a declaration.
pub(super) fn is_capitals(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_uppercase)
        && word.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

/// Whether a macro of this name defines the function that its first argument names: `SYSCALL_DEFINE3(read, ...)`.
pub(super) fn defines_function(word: &[u8]) -> bool {
    is_capitals(word) && memchr::memmem::find(word, b"DEFINE").is_some()
}
