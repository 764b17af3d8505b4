package site.ycsb.db;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import tare.ycsb.JdbcBinding;

/** Stands under the name of YCSB's own binding, and makes no table. */
public final class JdbcDBClient extends DB {
  private final DB made = new JdbcBinding();

  @Override
  public void setProperties(Properties properties) {
    made.setProperties(properties);
  }

  @Override
  public void cleanup() throws DBException {
    made.cleanup();
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return made.read(table, key, fields, result);
  }

  @Override
  public Status scan(String table, String key, int count, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    return made.scan(table, key, count, fields, result);
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return made.update(table, key, values);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return made.insert(table, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    return made.delete(table, key);
  }
}
