//! Opening of disks and interfaces, again whenever their list has changed.

use tare_record::header::TargetKind;

use super::{Place, Watcher};
use crate::discover::host;
use crate::discover::registry::Sources;
use crate::discover::spec::Spec;
use crate::source::device::Device;

impl Watcher {
    pub(super) fn find_interfaces(&mut self, name: &str, pid: Option<u32>) -> Result<(), String> {
        let place = Place::Interfaces(name.to_owned());
        if !self.may_come(&place) {
            return Ok(());
        }
        let directory = host::process_directory(pid);
        let names = host::interface_names(&directory);
        if names.is_empty() {
            return Err(format!("no network namespace at {}", directory.display()));
        }
        let every = if pid.is_none() { self.pace.host_every } else { 1 };
        let known = self.device_targets(&place, TargetKind::Interface, &names, Some(name));
        let targets = known.iter().map(|device| device.target).collect();
        let source = host::open_interfaces(&directory, known).map_err(|error| error.to_string())?;
        self.device_names.insert(place.clone(), names);
        self.add(place, source, targets, every);
        Ok(())
    }

    /// Opens disks and interfaces if their list has changed.
    pub(super) fn scan_devices(&mut self) {
        for spec in self.specs.clone() {
            if let Spec::Interfaces { name, pid } = spec {
                self.renew_interfaces(&name, Some(pid));
            }
        }
        if !self.with_host {
            return;
        }
        self.renew_interfaces("host", None);
        // The interfaces of the host's own namespace, which are only opened once.
        let _ = self.find_interfaces("host", None);
        let names = host::disk_names();
        let place = Place::Host("disks");
        if self.device_names.get(&place) == Some(&names) {
            return;
        }
        self.drop_slot(&place);
        let known = self.device_targets(&place, TargetKind::Disk, &names, None);
        if let Ok(source) = host::open_disks(known) {
            self.device_names.insert(place.clone(), names);
            self.add(place, source, Vec::new(), self.pace.host_every);
        }
    }

    fn renew_interfaces(&mut self, name: &str, pid: Option<u32>) {
        let place = Place::Interfaces(name.to_owned());
        let names = host::interface_names(&host::process_directory(pid));
        let changed = self.device_names.get(&place).is_some_and(|known| *known != names);
        if changed && self.is_live(&place) && !names.is_empty() {
            self.drop_slot(&place);
            let _ = self.find_interfaces(name, pid);
        }
    }

    /// Targets of devices; known ones keep their numbers.
    fn device_targets(
        &mut self,
        place: &Place,
        kind: TargetKind,
        names: &[Vec<u8>],
        space: Option<&str>,
    ) -> Vec<Device> {
        names
            .iter()
            .map(|name| {
                let key = (place.clone(), name.clone());
                let target = self.device_targets.get(&key).copied().unwrap_or_else(|| {
                    let plain = String::from_utf8_lossy(name);
                    let full =
                        space.map_or_else(|| plain.to_string(), |space| format!("{space}/{plain}"));
                    self.registry.add(kind, &full, &plain, Sources::new())
                });
                self.device_targets.insert(key, target);
                Device { name: name.clone(), target }
            })
            .collect()
    }
}
