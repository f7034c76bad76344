//! Launches: what is said when one begins and when it has ended.

use ptxrace::abi::Unit;
use ptxrace::backend::{Launch, LaunchEnd, LaunchInfo, Sink, Stop};
use ptxrace::engine::OpenTriage;
use ptxrace::session::exec::current_test;
use ptxrace::session::exec::log::{Gap, Line};

use super::{Stream, Watch};

/// Takes records to the engine, if the launch is to be checked, and keeps how it ended.
pub(crate) struct Tap<'t> {
    engine: Option<&'t mut OpenTriage>,
    end: LaunchEnd,
}

impl Tap<'_> {
    /// How the launch ended.
    pub(crate) fn into_end(self) -> LaunchEnd {
        self.end
    }
}

impl Sink for Tap<'_> {
    fn begin(&mut self, info: &LaunchInfo) {
        if let Some(engine) = &mut self.engine {
            engine.begin(info);
        }
    }

    fn records(&mut self, units: &[Unit]) {
        if let Some(engine) = &mut self.engine {
            engine.records(units);
        }
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.end = end.clone();
        if let Some(engine) = &mut self.engine {
            engine.end(end);
        }
    }
}

impl Watch {
    /// Whether the user wants the next launch of a kernel checked.
    pub(crate) fn wants(&mut self, kernel: &str) -> bool {
        self.wanted.next(kernel)
    }

    /// A kernel is launched, for the first time, that is not instrumented.
    pub(crate) fn not_instrumented(&mut self, kernel: String) {
        if self.wanted.names(&kernel) {
            self.gap(Gap::Opaque, format!("kernel `{kernel}` was not instrumented"));
        } else {
            self.say(&Line::Unwanted { kernel });
            self.flush();
        }
    }

    /// A launch of a kernel from the module of this number is given to a stream. Gives the number of the operation.
    pub(crate) fn begin_launch(
        &mut self,
        launch: &Launch,
        module: usize,
        stream: Stream,
        checked: bool,
    ) -> u32 {
        let order = self.streams.enqueue(stream);
        let index = order.index;
        self.say(&Line::Launch {
            index,
            module,
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            stream: launch.stream,
            checked,
            test: current_test(),
        });
        self.flush();
        self.engine.add_launch(launch, order);
        index
    }

    /// What takes the records of the launch that has begun.
    pub(crate) fn tap(&mut self, checked: bool) -> Tap<'_> {
        Tap { engine: checked.then_some(&mut self.engine), end: LaunchEnd::default() }
    }

    /// A launch has ended.
    pub(crate) fn end_launch(&mut self, index: u32, end: LaunchEnd, stop: Option<Stop>) {
        let shared = self.engine.shared_variables();
        self.say(&Line::End { index, end, stop, shared });
        self.report(false);
    }
}
