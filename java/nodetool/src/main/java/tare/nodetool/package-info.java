/** Cassandra's nodetool, called by tare. */
package tare.nodetool;
