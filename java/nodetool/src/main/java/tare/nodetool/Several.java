package tare.nodetool;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import org.apache.cassandra.tools.NodeProbe;

/**
 * Several commands of nodetool over one connection, each printed as JSON by nodetool itself: a JVM a command, which each
 * reads all commands first, takes several times as long.
 *
 * <p>Arguments: JMX port, then names of classes of {@code org.apache.cassandra.tools.nodetool}. A character RS (U+001E)
 * stands before what each prints. Ends with 1 and the reason on standard error.
 */
public final class Several {
  private static final String COMMANDS = "org.apache.cassandra.tools.nodetool.";
  private static final char BEFORE_EACH = '\u001e';

  private Several() {}

  public static void main(String[] words) {
    int code = 0;
    try (NodeProbe probe = new NodeProbe("127.0.0.1", Integer.parseInt(words[0]))) {
      for (int n = 1; n < words.length; n++) {
        System.out.print(BEFORE_EACH);
        print(words[n], probe);
      }
    } catch (InvocationTargetException error) {
      code = failed(error.getCause());
    } catch (ReflectiveOperationException | IOException | RuntimeException error) {
      code = failed(error);
    }
    System.exit(code); // threads of RMI may live on
  }

  private static int failed(Throwable error) {
    System.err.println(error);
    return 1;
  }

  private static void print(String name, NodeProbe probe) throws ReflectiveOperationException {
    Class<?> type = Class.forName(COMMANDS + name);
    Object command = type.getDeclaredConstructor().newInstance();
    Field format = type.getDeclaredField("outputFormat"); // of its option -F
    format.setAccessible(true);
    format.set(command, "json");
    type.getMethod("execute", NodeProbe.class).invoke(command, probe);
  }
}
