//! Launches: what is said when one begins and when it has ended.

use ptxrace::abi::Unit;
use ptxrace::backend::{Launch, LaunchEnd, LaunchInfo, Sink, Stop};
use ptxrace::session::exec::log::{Gap, Line, Writer};
use ptxrace::session::exec::{Observer, current_test};
use ptxrace::tensor::TensorMap;

use super::{Stream, Watch};

/// Takes records where they are checked, if the launch is to be checked, and keeps how it ended.
pub(crate) struct Tap<'t> {
    observer: Option<&'t mut Observer<Option<Writer>>>,
    /// Tensor maps that the launch is told of.
    tensor_maps: &'t mut Vec<(u64, TensorMap)>,
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
        if let Some(observer) = &mut self.observer {
            let tensor_maps = std::mem::take(self.tensor_maps);
            observer.begin(&LaunchInfo { tensor_maps, ..info.clone() });
        }
    }

    fn records(&mut self, units: &[Unit]) {
        if let Some(observer) = &mut self.observer {
            observer.records(units);
        }
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.end = end.clone();
        if let Some(observer) = &mut self.observer {
            observer.end(end);
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
        self.observer.launch(launch, order, module, checked, current_test());
        self.begun(index);
        index
    }

    /// What takes the records of the launch that has begun.
    pub(crate) fn tap(&mut self, checked: bool) -> Tap<'_> {
        Tap {
            observer: checked.then_some(&mut self.observer),
            tensor_maps: &mut self.tensors.pending,
            end: LaunchEnd::default(),
        }
    }

    /// A launch has ended.
    pub(crate) fn end_launch(&mut self, index: u32, end: LaunchEnd, stop: Option<Stop>) {
        self.observer.over(index, end, stop);
    }
}
