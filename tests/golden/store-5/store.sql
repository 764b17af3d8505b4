BEGIN TRANSACTION;
CREATE TABLE endings (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	reason VARCHAR NOT NULL, 
	blocks INTEGER NOT NULL, 
	machine_s FLOAT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "endings" VALUES(1,1.79567121610377192502e+09,'blocks',1,2.5,'{"reason":"blocks","blocks":1,"machine_s":2.5,"target":null,"arms":{"b":{"n":1,"low":null,"high":null,"half_width":null}},"margin":null}');
CREATE TABLE facts (
	digest VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "facts" VALUES('a46430f5f5cb61714025fa53dff028774ecca744ed8390a202c9d3701d93b6f6','{"cpus":2,"governor":null,"name":"local"}');
INSERT INTO "facts" VALUES('47b90b6ea12dc2591b2c08955764e33c40b0cdfc51c09b10de8f8905c149d5bb','{"version":"20.10.24"}');
INSERT INTO "facts" VALUES('900750a135be5952adc701f00abcc6ac68282b96e7f8e61f71a6eddc0cbba091','{"client":{"digest":"ab"},"sut":{"digest":"ab"}}');
INSERT INTO "facts" VALUES('ff77f72d497d4e002817245d8f16acdf61ae2d5799be95587bd729303c54c0bf','{"levels":{"arm":"b"},"plan_digest":"c0529192788696bf2a0b6ca251937c5376673c5f608b2fbec07571034d06e6ce","scale":"full","settings":{"client":{"cgroup":"run","confinement":{"capabilities":"default","no_new_privileges":false,"seccomp":"default"},"deployment":"fake","engine":null,"image":"tar:fake","limits":{"cpu_quota":null,"cpu_weight":null,"cpus":null,"disk_iops":null,"memory":null,"nofile":65536},"network":"host","own_host":false,"runtime":null},"monitors":{},"sut":{"cgroup":"run","confinement":{"capabilities":"default","no_new_privileges":false,"seccomp":"default"},"database":"fake","deployment":"fake","engine":null,"image":"tar:fake","limits":{"cpu_quota":null,"cpu_weight":null,"cpus":null,"disk_iops":null,"memory":null,"nofile":65536},"network":"host","nodes":1,"pod":null,"runtime":null,"settings":{},"storage":{"cache":"dropped","copy_up":null,"device":null,"file_system":null,"kind":"bind","rsize":null,"size":null,"sync":null,"wsize":null},"tls":false,"vm":null},"workload":{"cooldown_s":0.0,"measure_s":1.0,"warmup_s":0.0,"window_s":1.0},"workload_name":"fake"},"study":"tiny"}');
INSERT INTO "facts" VALUES('130c104ef8d75670ef000be69c15d47bd61cebd6d5f3da3cb5cd7ccb719e1715','{"ein Wert":"größer","port":"3306"}');
INSERT INTO "facts" VALUES('2534aea6de7f3cfba051d323dae76a7595775f7d6c55410220717dae3e411590','{"levels":{"arm":"a"},"plan_digest":"c0529192788696bf2a0b6ca251937c5376673c5f608b2fbec07571034d06e6ce","scale":"full","settings":{"client":{"cgroup":"run","confinement":{"capabilities":"default","no_new_privileges":false,"seccomp":"default"},"deployment":"fake","engine":null,"image":"tar:fake","limits":{"cpu_quota":null,"cpu_weight":null,"cpus":null,"disk_iops":null,"memory":null,"nofile":65536},"network":"host","own_host":false,"runtime":null},"monitors":{},"sut":{"cgroup":"run","confinement":{"capabilities":"default","no_new_privileges":false,"seccomp":"default"},"database":"fake","deployment":"fake","engine":null,"image":"tar:fake","limits":{"cpu_quota":null,"cpu_weight":null,"cpus":null,"disk_iops":null,"memory":null,"nofile":65536},"network":"host","nodes":1,"pod":null,"runtime":null,"settings":{},"storage":{"cache":"dropped","copy_up":null,"device":null,"file_system":null,"kind":"bind","rsize":null,"size":null,"sync":null,"wsize":null},"tls":false,"vm":null},"workload":{"cooldown_s":0.0,"measure_s":1.0,"warmup_s":0.0,"window_s":1.0},"workload_name":"fake"},"study":"tiny"}');
CREATE TABLE raw_files (
	run_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	bytes INTEGER NOT NULL, 
	sha256 VARCHAR NOT NULL, 
	PRIMARY KEY (run_id, attempt, name), 
	FOREIGN KEY(run_id, attempt) REFERENCES runs (run_id, attempt)
);
INSERT INTO "raw_files" VALUES('b01-1-b',1,'measure.stdout',4,'54034ac5c6e9ea95734ec2b729fd6d62abf64af34a9f9ce5d466cb788191a73d');
INSERT INTO "raw_files" VALUES('b01-1-b',2,'measure.stdout',4,'54034ac5c6e9ea95734ec2b729fd6d62abf64af34a9f9ce5d466cb788191a73d');
INSERT INTO "raw_files" VALUES('b01-2-a',1,'measure.stdout',4,'54034ac5c6e9ea95734ec2b729fd6d62abf64af34a9f9ce5d466cb788191a73d');
CREATE TABLE runs (
	run_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	run_index INTEGER NOT NULL, 
	block INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	arm VARCHAR NOT NULL, 
	ok BOOLEAN NOT NULL, 
	failed_in VARCHAR, 
	reason TEXT, 
	committed_at FLOAT NOT NULL, 
	host VARCHAR NOT NULL, 
	engine VARCHAR, 
	images VARCHAR NOT NULL, 
	setup VARCHAR, 
	effective VARCHAR, 
	digest VARCHAR NOT NULL, 
	record TEXT NOT NULL, 
	PRIMARY KEY (run_id, attempt), 
	FOREIGN KEY(host) REFERENCES facts (digest), 
	FOREIGN KEY(engine) REFERENCES facts (digest), 
	FOREIGN KEY(images) REFERENCES facts (digest), 
	FOREIGN KEY(setup) REFERENCES facts (digest), 
	FOREIGN KEY(effective) REFERENCES facts (digest)
);
INSERT INTO "runs" VALUES('b01-1-b',1,0,1,0,'b',0,'measure','told to fail',1.79567121597760534284e+09,'a46430f5f5cb61714025fa53dff028774ecca744ed8390a202c9d3701d93b6f6','47b90b6ea12dc2591b2c08955764e33c40b0cdfc51c09b10de8f8905c149d5bb','900750a135be5952adc701f00abcc6ac68282b96e7f8e61f71a6eddc0cbba091','ff77f72d497d4e002817245d8f16acdf61ae2d5799be95587bd729303c54c0bf','130c104ef8d75670ef000be69c15d47bd61cebd6d5f3da3cb5cd7ccb719e1715','6fb5643bf8c6c4e1485e2a3d60a0e7e518b38997429355b158ea6f70c1ba038a','{"arm":"b","attempt":1,"between":null,"block":1,"chronicle":null,"client_engine":null,"client_host":null,"continues":null,"duet":null,"emulated":[],"format":4,"imported":null,"index":0,"measurement":null,"monitors":{"probe":{"cpu_s":0.003,"interval_s":0.1,"samples":12}},"nodes":null,"notices":["a notice"],"outcome":{"failed_in":"measure","ok":false,"reason":"told to fail","refused":false},"parity":{"client":null,"sut":{"cpus_allowed":"0"}},"path":{"hop":"loopback"},"phases":[{"began_at":1700000000.5,"monotonic_s":7.5,"phase":"measure","seconds":1.25}],"pilot":null,"plugins":null,"position":0,"raw":["measure.stdout"],"run_id":"b01-1-b","seed":1686732588,"site":null,"snapshot":{"key":"k","made_by":{"sut":{"deployment":"fake"}}},"usage":null}');
INSERT INTO "runs" VALUES('b01-1-b',2,0,1,0,'b',1,NULL,NULL,1.79567121602380561831e+09,'a46430f5f5cb61714025fa53dff028774ecca744ed8390a202c9d3701d93b6f6','47b90b6ea12dc2591b2c08955764e33c40b0cdfc51c09b10de8f8905c149d5bb','900750a135be5952adc701f00abcc6ac68282b96e7f8e61f71a6eddc0cbba091','ff77f72d497d4e002817245d8f16acdf61ae2d5799be95587bd729303c54c0bf','130c104ef8d75670ef000be69c15d47bd61cebd6d5f3da3cb5cd7ccb719e1715','f2f3831508d6763535cac20e690eb924869a9b5fd1e8c76a183e2e95c001aab2','{"arm":"b","attempt":2,"between":null,"block":1,"chronicle":null,"client_engine":null,"client_host":null,"continues":null,"duet":null,"emulated":[],"format":4,"imported":null,"index":0,"measurement":{"throughput_per_s":1234.5678901234567,"unit":"requests","windows":[{"end_s":1.0}]},"monitors":{"probe":{"cpu_s":0.003,"interval_s":0.1,"samples":12}},"nodes":null,"notices":["a notice"],"outcome":{"failed_in":null,"ok":true,"reason":null,"refused":false},"parity":{"client":null,"sut":{"cpus_allowed":"0"}},"path":{"hop":"loopback"},"phases":[{"began_at":1700000000.5,"monotonic_s":7.5,"phase":"measure","seconds":1.25}],"pilot":null,"plugins":null,"position":0,"raw":["measure.stdout"],"run_id":"b01-1-b","seed":1686732588,"site":null,"snapshot":{"key":"k","made_by":{"sut":{"deployment":"fake"}}},"usage":null}');
INSERT INTO "runs" VALUES('b01-2-a',1,1,1,1,'a',1,NULL,NULL,1.79567121605947637558e+09,'a46430f5f5cb61714025fa53dff028774ecca744ed8390a202c9d3701d93b6f6','47b90b6ea12dc2591b2c08955764e33c40b0cdfc51c09b10de8f8905c149d5bb','900750a135be5952adc701f00abcc6ac68282b96e7f8e61f71a6eddc0cbba091','2534aea6de7f3cfba051d323dae76a7595775f7d6c55410220717dae3e411590','130c104ef8d75670ef000be69c15d47bd61cebd6d5f3da3cb5cd7ccb719e1715','97de76638a4fadf5e711582c8ae1864a85651c408ecb24778553deab1d233089','{"arm":"a","attempt":1,"between":null,"block":1,"chronicle":null,"client_engine":null,"client_host":null,"continues":null,"duet":null,"emulated":["sut"],"format":4,"imported":null,"index":1,"measurement":{"throughput_per_s":1234.5678901234567,"unit":"requests","windows":[{"end_s":1.0}]},"monitors":{"probe":{"cpu_s":0.003,"interval_s":0.1,"samples":12}},"nodes":null,"notices":["a notice"],"outcome":{"failed_in":null,"ok":true,"reason":null,"refused":false},"parity":{"client":null,"sut":{"cpus_allowed":"0"}},"path":{"hop":"loopback"},"phases":[{"began_at":1700000000.5,"monotonic_s":7.5,"phase":"measure","seconds":1.25}],"pilot":null,"plugins":null,"position":1,"raw":["measure.stdout"],"run_id":"b01-2-a","seed":1686732588,"site":null,"snapshot":{"key":"k","made_by":{"sut":{"deployment":"fake"}}},"usage":null}');
CREATE TABLE study (
	id INTEGER NOT NULL, 
	store_id VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	tare_version VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	scale VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	plan_digest VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT one_study_a_store CHECK (id = 1)
);
INSERT INTO "study" VALUES(1,'d942d630561e4682801e8a381b062bdd',1.79567121594515752792e+09,'0.1.0','tiny','full',1,'c0529192788696bf2a0b6ca251937c5376673c5f608b2fbec07571034d06e6ce','format: 1
name: tiny
','{"study":{"name":"tiny","scale":"full","question":"Which?","source":null,"arms":[{"name":"a","levels":{"arm":"a"},"settings":{"sut":{"image":"tar:fake","deployment":"fake","engine":null,"runtime":null,"confinement":{"seccomp":"default","capabilities":"default","no_new_privileges":false},"network":"host","limits":{"cpus":null,"cpu_quota":null,"cpu_weight":null,"memory":null,"nofile":65536,"disk_iops":null},"cgroup":"run","database":"fake","nodes":1,"tls":false,"storage":{"kind":"bind","cache":"dropped","copy_up":null,"size":null,"file_system":null,"device":null,"sync":null,"rsize":null,"wsize":null},"vm":null,"pod":null,"settings":{}},"client":{"image":"tar:fake","deployment":"fake","engine":null,"runtime":null,"confinement":{"seccomp":"default","capabilities":"default","no_new_privileges":false},"network":"host","limits":{"cpus":null,"cpu_quota":null,"cpu_weight":null,"memory":null,"nofile":65536,"disk_iops":null},"cgroup":"run","own_host":false},"workload_name":"fake","workload":{"warmup_s":0.0,"measure_s":1.0,"window_s":1.0,"cooldown_s":0.0},"monitors":{}},"control":false},{"name":"b","levels":{"arm":"b"},"settings":{"sut":{"image":"tar:fake","deployment":"fake","engine":null,"runtime":null,"confinement":{"seccomp":"default","capabilities":"default","no_new_privileges":false},"network":"host","limits":{"cpus":null,"cpu_quota":null,"cpu_weight":null,"memory":null,"nofile":65536,"disk_iops":null},"cgroup":"run","database":"fake","nodes":1,"tls":false,"storage":{"kind":"bind","cache":"dropped","copy_up":null,"size":null,"file_system":null,"device":null,"sync":null,"rsize":null,"wsize":null},"vm":null,"pod":null,"settings":{}},"client":{"image":"tar:fake","deployment":"fake","engine":null,"runtime":null,"confinement":{"seccomp":"default","capabilities":"default","no_new_privileges":false},"network":"host","limits":{"cpus":null,"cpu_quota":null,"cpu_weight":null,"memory":null,"nofile":65536,"disk_iops":null},"cgroup":"run","own_host":false},"workload_name":"fake","workload":{"warmup_s":0.0,"measure_s":1.0,"window_s":1.0,"cooldown_s":0.0},"monitors":{}},"control":false}],"baseline":"a","baseline_levels":{},"factors":{"arm":["a","b"]},"varies":{},"protocol":{"blocks":2,"retries":1,"seed":0,"name":"fixed","sequence":"spread","control":false,"paired":false},"published":[],"quantities":null,"margins":{},"deviations":["It is small."],"text":"format: 1\nname: tiny\n","conditions":[],"strata":[],"stages":null,"published_by":null,"disk_bound":{},"imported":null},"seed":1,"runs":[{"id":"b01-1-b","index":0,"block":1,"position":0,"arm":"b","seed":1686732588},{"id":"b01-2-a","index":1,"block":1,"position":1,"arm":"a","seed":1686732588},{"id":"b02-1-b","index":2,"block":2,"position":0,"arm":"b","seed":1481460013},{"id":"b02-2-a","index":3,"block":2,"position":1,"arm":"a","seed":1481460013}],"digest":"c0529192788696bf2a0b6ca251937c5376673c5f608b2fbec07571034d06e6ce"}');
CREATE UNIQUE INDEX one_good_attempt_a_run ON runs (run_id) WHERE ok;
COMMIT;
PRAGMA application_id = 1952543333;
PRAGMA user_version = 5;
