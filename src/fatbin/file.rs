//! All containers of a file.
//!
//! nvcc puts containers into sections of their own: `.nv_fatbin`, and `__nv_relfatbin` for relocatable code. There, whatever
//! looks damaged is told. Others put them elsewhere: libraries into their data, archives into members, Windows into other
//! formats. So all of a file is searched, and outside of those sections only what has an image counts.

use memchr::memmem::Finder;
use object::{Object, ObjectSection};

use super::container::{self, Container, HEADER_BYTES, MAGIC, container_bytes};
use super::fault::{Fault, Problem};

/// Sections that hold containers and nothing else.
const SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
/// Faults that are kept; the rest is counted.
const MAX_FAULTS: usize = 100;

/// What a file has.
#[derive(Clone, Debug, Default)]
pub struct Contents<'f> {
    /// Its containers, in order.
    pub containers: Vec<Container<'f>>,
    /// What is damaged, as far as kept.
    pub faults: Vec<Fault>,
    /// How many faults were not kept.
    pub more_faults: usize,
}

impl Contents<'_> {
    fn note(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS { self.faults.push(fault) } else { self.more_faults += 1 }
    }
}

/// Bytes that should be containers and nothing else.
struct Region<'f> {
    start: usize,
    end: usize,
    section: Option<&'f str>,
    used: bool,
}

/// Finds all containers of a file.
pub fn read(file: &[u8]) -> Contents<'_> {
    let mut contents = Contents::default();
    let mut regions = match regions(file) {
        Ok(regions) => regions,
        Err(fault) => {
            contents.note(fault);
            Vec::new()
        }
    };
    let magic = Finder::new(&MAGIC);
    let mut at = 0;
    while let Some(distance) = file.get(at..).and_then(|rest| magic.find(rest)) {
        let start = at + distance;
        at = start + MAGIC.len();
        let after = regions.partition_point(|region| region.start <= start);
        let region = after.checked_sub(1).and_then(|index| regions.get_mut(index));
        let region = region.filter(|region| start < region.end);
        let limit = region.as_ref().map_or(file.len(), |region| region.end);
        let mut faults = Vec::new();
        let found = container::parse(file, start, limit, &mut |fault| faults.push(fault));
        match (found, region) {
            // What writes fatbins has their header in its code.
            (Ok((container, _)), None) if container.images.is_empty() => continue,
            (Err(_), None) => continue,
            (Ok((container, next)), region) => {
                let section = region.and_then(|region| {
                    region.used = true;
                    region.section
                });
                contents.containers.push(Container { section, ..container });
                at = next.max(start + HEADER_BYTES);
            }
            (Err(fault), Some(region)) => {
                region.used = true;
                faults.push(fault);
            }
        }
        faults.into_iter().for_each(|fault| contents.note(fault));
    }
    for region in regions.iter().filter(|region| !region.used) {
        let bytes = file.get(region.start..region.end).unwrap_or_default();
        if let Some(first) = bytes.iter().position(|byte| *byte != 0)
            && let Err(fault) = container_bytes(bytes.get(first..).unwrap_or_default())
        {
            contents.note(Fault { offset: region.start + first + fault.offset, ..fault });
        }
    }
    contents
}

/// The parts of a file that should be containers and nothing else, in order, none of them in another.
fn regions(file: &[u8]) -> Result<Vec<Region<'_>>, Fault> {
    let region = |start, end, section| Region { start, end, section, used: false };
    if file.starts_with(&MAGIC) {
        return Ok(vec![region(0, file.len(), None)]);
    }
    if !file.starts_with(&object::elf::ELFMAG) {
        return Ok(Vec::new());
    }
    let elf = object::File::parse(file).map_err(|error| Problem::Elf { why: error.to_string() }.at(0))?;
    let mut regions = Vec::new();
    for section in elf.sections() {
        let Ok(name) = section.name() else { continue };
        let (true, Some((start, size))) = (SECTIONS.contains(&name), section.file_range()) else { continue };
        let bounds = usize::try_from(start).ok().zip(usize::try_from(start.saturating_add(size)).ok());
        match bounds {
            Some((start, end)) if end <= file.len() => regions.push(region(start, end, Some(name))),
            _ => {
                let left = (file.len() as u64).saturating_sub(start);
                let what = "a section of fatbins";
                return Err(Problem::Truncated { what, needed: size, left }.at(file.len()));
            }
        }
    }
    regions.sort_by_key(|region| region.start);
    let mut end = 0;
    for region in &mut regions {
        region.start = region.start.max(end);
        end = end.max(region.end);
    }
    regions.retain(|region| region.start < region.end);
    Ok(regions)
}
