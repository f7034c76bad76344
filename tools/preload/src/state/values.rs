//! Values in memory that streams write and wait for, carried out.

use ptxrace::session::exec::log::Gap;

use super::{Driver, Side, Stream};
use crate::code::{Answer, Code};
use crate::watch::{Place, Step, Value};

impl Driver {
    /// Writes values or waits for them, in this order. As calls happen at once, what is waited for has to be there.
    pub(crate) fn values(&mut self, call: &'static str, stream: Stream, steps: &[Step]) -> Answer {
        if self.is_capturing(stream) {
            crate::process::gap(Gap::Call, format!("`{call}` is not provided where streams are captured"));
            return Err(Code::NOT_SUPPORTED);
        }
        for step in steps {
            match step {
                Step::Write { value, .. } => self.write_value(*value)?,
                Step::Wait { value, condition } => {
                    let is = self.read_value(*value)?;
                    if !condition.holds(is, *value) {
                        let what = format!("`{call}` waits for what is not there yet, and was not held up");
                        self.watch.gap(Gap::Call, what);
                    }
                }
                Step::Barrier => {}
                Step::Unknown => return Err(Code::NOT_SUPPORTED),
            }
        }
        self.watch.values(call, stream, steps.iter().copied());
        Ok(())
    }

    fn write_value(&mut self, value: Value) -> Answer {
        let place = self.value_place(value)?;
        self.put(place, value.address, &value.bits.to_le_bytes()[..value.bytes])
    }

    fn read_value(&mut self, value: Value) -> Answer<u64> {
        let place = self.value_place(value)?;
        let mut is = [0; 8];
        self.bytes(place, value.address, &mut is[..value.bytes])?;
        Ok(u64::from_le_bytes(is))
    }

    fn value_place(&self, value: Value) -> Answer<Place> {
        let aligned = value.address.is_multiple_of(value.bytes as u64);
        let place = self.place(value.address, value.bytes, Side::Any)?;
        if aligned && place != Place::Pageable { Ok(place) } else { Err(Code::INVALID_VALUE) }
    }
}
