//! What each rule means, for `ptxrace explain`.

use crate::finding::Rule;

/// A rule for people.
#[derive(Clone, Copy, Debug)]
pub struct RuleText {
    /// The rule.
    pub rule: Rule,
    /// Its usual severity.
    pub severity: &'static str,
    /// A few words.
    pub title: &'static str,
    /// What was seen.
    pub what: &'static str,
    /// Why it is wrong by the memory model.
    pub why: &'static str,
    /// An example.
    pub example: &'static str,
    /// How to fix it.
    pub fix: &'static str,
}

/// The text of a rule.
pub fn text(rule: Rule) -> Option<&'static RuleText> {
    TEXTS.iter().find(|text| text.rule == rule)
}

/// The rule with this id, in either case.
pub fn by_id(id: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| rule.id().eq_ignore_ascii_case(id))
}

const TEXTS: [RuleText; 18] = [
    RuleText {
        rule: Rule::R001,
        severity: "error (warning when only the convergence of lanes orders them)",
        title: "data race inside a block",
        what: "Two warps of a block access the same bytes, at least one writes, and no block barrier orders them.",
        why: "Warps of a block run independently. Only `bar.sync` and its relatives (`__syncthreads()`), or a release \
              that is acquired, make one warp's weak accesses happen before another's. Without it the reader may see \
              the old value, the new one, or on some runs either.",
        example: "tile[t] = in[t];\nout[t] = tile[n - 1 - t];      // another warp may not have written yet",
        fix: "Put `__syncthreads()` between the two accesses, where all threads of the block reach it. In a loop, \
              look at the end of the body too: the next trip's write races with this trip's read.",
    },
    RuleText {
        rule: Rule::R002,
        severity: "error (warning when the lanes are of one store, or the accesses are strong)",
        title: "data race inside a warp",
        what: "Two lanes of a warp access the same bytes, at least one writes, and no warp barrier orders them.",
        why: "Since Volta the lanes of a warp run independently; lockstep is not promised. `bar.warp.sync` \
              (`__syncwarp()`) orders the memory accesses of the lanes in its mask. Shuffles, votes and other `.sync` \
              instructions only bring the lanes together: they order no memory.",
        example: "s[t] += s[t + 16];\ns[t] += s[t + 8];             // lane 8's write above may come later",
        fix: "Put `__syncwarp()` between the accesses, or keep the values in registers and use `__shfl_down_sync`. \
              Where lanes of one store hit the same bytes, let one lane write.",
    },
    RuleText {
        rule: Rule::R003,
        severity: "error (warning when only the convergence of lanes orders them)",
        title: "data race between blocks",
        what: "Two blocks (or clusters) of one launch access the same bytes, at least one writes, and nothing orders \
               them.",
        why: "Blocks run in any order and at the same time; a block barrier does not reach beyond its block. Order \
              between blocks needs a release in one and an acquire in the other that observes it, or the end of the \
              launch.",
        example: "if (threadIdx.x == 0) out[0] = sum;   // every block writes out[0]",
        fix: "Give each block its own part of the data, use atomics, or split the kernel into two launches. Where one \
              thread releases for its block, put `__syncthreads()` before that; where one acquires, put it behind.",
    },
    RuleText {
        rule: Rule::R004,
        severity: "error (warning when it is the host that is left out)",
        title: "scope too narrow",
        what: "Both accesses are strong (atomic, volatile, relaxed, release or acquire) or fenced, but the scope of \
               one leaves the other thread out. Or a kernel publishes data to the host while it runs: both lie in memory that \
               the host reaches (pinned, mapped or managed), a flag is stored behind a release of narrower scope than `.sys`, and \
               no thread of the device reads that flag.",
        why: "Atomicity and order hold only among the threads of the scope. `atom.cta` is atomic for the own block; \
              towards another block it is like a plain access, and updates get lost.",
        example: "atomicAdd_block(&total, x);           // total is shared by all blocks",
        fix: "Use a scope that holds both threads: `.cluster`, `.gpu` (`atomicAdd`, `__threadfence()`) or `.sys` \
              (`atomicAdd_system`, `__threadfence_system()`).",
    },
    RuleText {
        rule: Rule::R005,
        severity: "error (warning when the data itself is accessed strongly)",
        title: "unsynchronised publication",
        what: "One thread wrote data and then a flag; another saw the flag and then touched the data. But the flag \
               does not carry the order.",
        why: "Order passes from writer to reader only by a release pattern (a releasing write, or a fence and then a \
              strong write) that an acquire pattern observes (an acquiring read, or a strong read and then a fence). \
              A plain or volatile flag, a fence on one side only, or a fence in the wrong place is not enough. Locks \
              are flags too: without fences the critical sections are not ordered.",
        example: "data[i] = v; flag = 1;                // writer: no fence between\nwhile (!flag); use(data[i]);          // reader: no fence behind the read",
        fix: "Writer: `__threadfence()` between the data and an atomic write of the flag. Reader: an atomic read of \
              the flag and `__threadfence()` behind it. Or use `cuda::atomic_ref` with `memory_order_release` and \
              `memory_order_acquire`.",
    },
    RuleText {
        rule: Rule::R006,
        severity: "error",
        title: "launches, or host and kernel, unordered",
        what: "Launches in different streams, nodes of a graph, or the host and a kernel, touch the same memory, and \
               no event, edge or synchronisation orders them.",
        why: "Launches of one stream follow each other. Launches of two streams may run at the same time or in \
              either order unless one waits for an event behind the other, and so may two nodes of a graph unless a \
              path of edges leads from one to the other.",
        example: "produce<<<g, b, 0, s1>>>(buf);\nconsume<<<g, b, 0, s2>>>(buf);",
        fix: "Record an event behind the first launch and let the second stream wait for it, or use one stream. In a \
              capture that makes an edge of the graph.",
    },
    RuleText {
        rule: Rule::R007,
        severity: "error (warning when only the convergence of lanes orders them)",
        title: "atomic against plain",
        what: "One side is an atomic or reduction, the other a plain load or store of the same bytes, unordered.",
        why: "An atomic is atomic towards other strong operations only. A plain load may be merged, repeated or \
              served from a stale line, and a plain store may be lost under an atomic.",
        example: "atomicAdd(&count, 1);\nif (count > limit) return;            // plain read of what others add to",
        fix: "Make the plain access a relaxed atomic one (`cuda::atomic_ref::load`, `atomicAdd(p, 0)`), or put the \
              barrier between them that orders them.",
    },
    RuleText {
        rule: Rule::R008,
        severity: "error (warning when only a read lacks the proxy fence)",
        title: "asynchronous copy",
        what: "Memory of an asynchronous copy is accessed before the copy is known to be complete, a copy is issued before \
               earlier accesses to its bytes are ordered before it, or a proxy fence is missing.",
        why: "Asynchronous copies run beside the thread that issues them; even that thread is not ordered with them. A wait \
              for their group tells the issuing thread alone that they are complete, and a phase of an mbarrier tells those \
              that wait for it; others learn it by a barrier behind that wait. Bulk copies go through the async proxy: \
              ordinary accesses that come before need `fence.proxy.async` besides a barrier. A read that lacks only that \
              fence before a copy overwrites its bytes has its value already, and is a warning.",
        example: "cp.async.ca.shared.global [s], [g], 16;\nld.shared.f32 %f1, [s];               // nothing waited",
        fix: "Commit the copies and wait for their group (`cp.async.wait_group N` lets the latest N groups stay), or wait for \
              the phase of the mbarrier with the right parity; put a barrier behind the wait if other threads use the \
              bytes, and another before they are copied to again. Put `fence.proxy.async` behind ordinary accesses, before \
              the barrier that the issuer of a bulk copy passes.",
    },
    RuleText {
        rule: Rule::R009,
        severity: "error",
        title: "read-only path",
        what: "`ld.global.nc`, a texture or a constant reads memory that is written in the same launch, or a surface reads what \
               the same launch has written by a surface.",
        why: "The read-only path is not kept coherent. No barrier and no fence makes such a read see a write of the \
              same launch. The CUDA programming guide says the same of surfaces; where barriers order the write \
              before the read, devices that keep both in one cache do what is meant, and it is a warning.",
        example: "out[i] = x;  __syncthreads();  y = __ldg(&out[j]);",
        fix: "Read with a plain load (drop `__ldg` and `const __restrict__`), or write in an earlier launch.",
    },
    RuleText {
        rule: Rule::R010,
        severity: "warning",
        title: "writers of the same value",
        what: "Several threads write the same bytes unordered, all with the same value, and nobody reads them \
               meanwhile.",
        why: "By the memory model it is a race, but the result is the same whoever comes last. It stops being \
              harmless when the values begin to differ.",
        example: "if (bad) *found = 1;                  // by any number of threads",
        fix: "Let one thread write, or write with a relaxed atomic store.",
    },
    RuleText {
        rule: Rule::R011,
        severity: "error (warning when both are read-modify-writes)",
        title: "mixed sizes",
        what: "Unordered accesses of different size overlap.",
        why: "The memory model gives values to races of equal size only. Accesses that overlap in part are never \
              morally strong, not even atomics, and void the guarantees of the whole execution.",
        example: "bytes[i] = 1;                         // one thread\nuint32_t w = *(uint32_t*)bytes;       // another",
        fix: "Access the bytes with one size, or order the accesses.",
    },
    RuleText {
        rule: Rule::S001,
        severity: "error",
        title: "barrier divergence",
        what: "A thread of the block waits at another barrier or never comes, or threads give different counts.",
        why: "A barrier waits for all threads it counts. Threads that have exited count as arrived; a live one that \
              takes another way leaves the others waiting, or meets them at a barrier meant for something else.",
        example: "if (threadIdx.x < 32) __syncthreads();",
        fix: "Move the barrier out of the branch, or use a named barrier with the count of the threads that come.",
    },
    RuleText {
        rule: Rule::S002,
        severity: "error",
        title: "warp mask",
        what: "A warp-level instruction's mask leaves out a lane that executes it, or names one that does not take \
               part.",
        why: "Every lane named in the mask must execute the same instruction with the same mask, and an executing \
              lane must be named. Anything else is undefined, and hangs or gives wrong values on some devices.",
        example: "if (lane < 16) v = __shfl_down_sync(0xffffffff, v, 8);",
        fix: "Compute the mask before the branch with `__ballot_sync`, and use it inside.",
    },
    RuleText {
        rule: Rule::S003,
        severity: "note",
        title: "waits for what never comes",
        what: "A thread reads a value again and again, and nobody who runs will ever change it: who would write it has ended, \
               waits itself, or is a block that can start only when another one has ended. Only the emulator tells, once the \
               state of all threads repeats; loops that count or look at a clock end by the timeout. The run is inconclusive \
               then, as nothing that would follow was seen.",
        why: "Blocks become resident in any order, and nothing makes room for a later block while earlier ones spin.",
        example: "while (ld_acquire(&arrived) != gridDim.x);",
        fix: "Launch cooperatively, or with no more blocks than fit, or hand out the order by an atomic ticket. Where no \
              block is missing, see to it that the value is written whatever way the threads take.",
    },
    RuleText {
        rule: Rule::M001,
        severity: "error",
        title: "out of bounds",
        what: "An access reaches beyond its buffer or variable.",
        why: "On a device it reads or corrupts whatever lies there; only the emulator tells.",
        example: "out[i] = x;                           // i == n",
        fix: "Check the index, or give the buffer its size in the launch description.",
    },
    RuleText {
        rule: Rule::M002,
        severity: "error",
        title: "misaligned",
        what: "An address is no multiple of the access's size.",
        why: "Accesses must be aligned to their whole size, vectors included; a device faults.",
        example: "float4 v = *(float4*)(p + 1);",
        fix: "Align the data, or use narrower accesses.",
    },
    RuleText {
        rule: Rule::M003,
        severity: "error",
        title: "freed memory",
        what: "An access to memory that was freed.",
        why: "The memory may belong to something else by then.",
        example: "cudaFree(p); kernel<<<g, b>>>(p);",
        fix: "Free after the last launch that uses it has ended.",
    },
    RuleText {
        rule: Rule::M004,
        severity: "warning",
        title: "uninitialised read",
        what: "A value is used none of whose bytes anybody has written: of shared memory, which holds anything when a block \
               starts, or of global memory that was allocated and not filled (`=uninit` in a launch description, `malloc` in a \
               kernel, and under `exec` allocations of the driver). Only the emulator tells. Use is arithmetic, a comparison, an \
               address, or a store; to read a value and drop it is none, nor are moves, selections, shuffles and bit operations, \
               nor copies by vectors or of less than four bytes, as of what lies between members of a structure. Where a race \
               decides whether it was written, only the race is reported.",
        why: "What such memory holds differs from run to run and from device to device.",
        example: "__shared__ int sum; atomicAdd(&sum, x);",
        fix: "Initialise it, and put a barrier behind that.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_text() {
        for rule in Rule::ALL {
            let text = text(rule).unwrap();
            assert!([text.what, text.why, text.fix].iter().all(|t| t.ends_with('.')), "{}", rule.id());
            assert_eq!(by_id(&rule.id().to_lowercase()), Some(rule));
        }
        assert_eq!(by_id("R999"), None);
    }
}
