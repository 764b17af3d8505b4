/**
 * Bindings for YCSB's core, which Maven Central has without any.
 *
 * <p>Each takes the property names of YCSB's own binding for the same kind of database. They connect before the first
 * operation is due (in {@code setProperties}), so that connecting is not in YCSB's RunTime. A record that is not there
 * is {@code NOT_FOUND}, never {@code OK}.
 */
package tare.ycsb;
